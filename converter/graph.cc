#include "converter/graph.h"

#include <memory>
#include <stdexcept>

namespace oxbow::convert {
namespace {

// A wrong graph here is a mistake in an importer, not in the checkpoint: those were checked before.
void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("graph: " + what);
}

}  // namespace

void GraphBuilder::begin_entry(const Entry& options) {
  const std::string prefix = options.name == "step" ? "" : options.name + ".";
  graph_.model.entry_points.push_back(std::make_unique<schema::EntryPointT>());
  entry().name = options.name;
  entry().starts = options.starts;
  entry().capacity = options.capacity;
  entry().any_pieces = options.any_pieces;
  tokens_symbol_ = symbol(prefix + "tokens", options.max_segment);
  output_symbol_ = symbol(prefix + "output_rows", options.max_segment);
  const bool is_ids = options.float_width == 0;
  tokens_ = add_input(options.tokens, is_ids ? 1 : options.float_width, kNone);
  has_output_ = false;
  schema::TensorT& main = graph_.tensor(tokens_);
  main.required = true;
  if (is_ids) {
    main.type = schema::DataType::I32;
    main.limit = options.vocabulary;
  }
  entry().tokens = tokens_;
}

uint32_t GraphBuilder::add_input(const std::string& name, uint32_t width, uint32_t rows_symbol) {
  const uint32_t index =
      activation(name, rows_symbol == kNone ? tokens_symbol_ : rows_symbol, width);
  graph_.tensor(index).kind = schema::TensorKind::Input;
  return index;
}

uint32_t GraphBuilder::input(const std::string& name, uint32_t limit, uint32_t default_value,
                             uint32_t rows_symbol) {
  const uint32_t index = add_input(name, 1, rows_symbol);
  graph_.tensor(index).type = schema::DataType::I32;
  graph_.tensor(index).limit = limit;
  graph_.tensor(index).default_value = default_value;
  entry().inputs.push_back(index);
  return index;
}

uint32_t GraphBuilder::float_input(const std::string& name, uint32_t width, uint32_t rows_symbol,
                                   bool required) {
  const uint32_t index = add_input(name, width, rows_symbol);
  graph_.tensor(index).required = required;
  entry().inputs.push_back(index);
  return index;
}

uint32_t GraphBuilder::symbol(const std::string& name, uint32_t max) {
  auto symbol = std::make_unique<schema::SymbolT>();
  symbol->name = name;
  symbol->max = max;
  graph_.model.symbols.push_back(std::move(symbol));
  return static_cast<uint32_t>(graph_.model.symbols.size() - 1);
}

uint32_t GraphBuilder::ring(const std::string& name, uint32_t capacity,
                            const RingOptions& options) {
  auto ring = std::make_unique<schema::RingT>();
  ring->name = name;
  ring->capacity = capacity;
  ring->pinned = options.pinned;
  ring->initial_rows = options.initial_rows;
  ring->shared = options.shared;
  graph_.model.rings.push_back(std::move(ring));
  return static_cast<uint32_t>(graph_.model.rings.size() - 1);
}

uint32_t GraphBuilder::tensor(const std::string& name, schema::TensorKind kind, uint32_t rows,
                              uint32_t width) {
  auto tensor = std::make_unique<schema::TensorT>();
  tensor->name = name;
  tensor->kind = kind;
  tensor->rows = rows;
  tensor->width = width;
  graph_.model.tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(graph_.model.tensors.size() - 1);
}

uint32_t GraphBuilder::weight(const std::string& name, uint32_t rows, uint32_t width,
                              std::vector<float> values) {
  require(values.size() == size_t{rows} * width, "weight " + name + " has the wrong size");
  const uint32_t index = tensor(name, schema::TensorKind::Weight, rows, width);
  graph_.weights[index] = Weight(rows, width, std::move(values), graph_.file);
  return index;
}

uint32_t GraphBuilder::ring_state(const std::string& name, uint32_t ring, uint32_t width,
                                  uint32_t initial) {
  const uint32_t index =
      tensor(name, schema::TensorKind::State, graph_.model.rings.at(ring)->capacity, width);
  graph_.tensor(index).ring = static_cast<int32_t>(ring);
  if (initial != kNone) graph_.tensor(index).initial = static_cast<int32_t>(initial);
  return index;
}

uint32_t GraphBuilder::state(const std::string& name, uint32_t rows, uint32_t width,
                             uint32_t initial) {
  const uint32_t index = tensor(name, schema::TensorKind::State, rows, width);
  if (initial == kNone) return index;
  const schema::TensorT& values = graph_.tensor(initial);
  require(values.width == width && (values.rows == 1 || values.rows == rows),
          "the initial values of " + name + " have another shape");
  graph_.tensor(index).initial = static_cast<int32_t>(initial);
  return index;
}

uint32_t GraphBuilder::constant_state(const std::string& name, uint32_t rows, uint32_t width,
                                      float value) {
  if (value == 0.0f) return state(name, rows, width);
  return state(name, rows, width,
               weight(name + ".initial", 1, width, std::vector<float>(width, value)));
}

uint32_t GraphBuilder::activation(const std::string& name, uint32_t rows_symbol, uint32_t width) {
  const uint32_t rows = graph_.model.symbols.at(rows_symbol)->max;
  const uint32_t index = tensor(name, schema::TensorKind::Activation, rows, width);
  graph_.tensor(index).rows_symbol = static_cast<int32_t>(rows_symbol);
  return index;
}

uint32_t GraphBuilder::like(const std::string& name, uint32_t x, uint32_t width) {
  const uint32_t index = tensor(name, schema::TensorKind::Activation, graph_.tensor(x).rows, width);
  graph_.tensor(index).rows_symbol = graph_.tensor(x).rows_symbol;
  return index;
}

void GraphBuilder::set_ids(uint32_t tensor, uint32_t limit) {
  graph_.tensor(tensor).type = schema::DataType::I32;
  graph_.tensor(tensor).limit = limit;
}

uint32_t GraphBuilder::ids(const std::string& name, uint32_t limit) {
  const uint32_t index = activation(name, tokens_symbol_, 1);
  set_ids(index, limit);
  return index;
}

schema::StepT& GraphBuilder::step(schema::OpCode op, std::vector<uint32_t> inputs,
                                  std::vector<uint32_t> outputs) {
  auto step = std::make_unique<schema::StepT>();
  step->op = op;
  step->inputs = std::move(inputs);
  step->outputs = std::move(outputs);
  entry().steps.push_back(std::move(step));
  return *entry().steps.back();
}

uint32_t GraphBuilder::embedding(const std::string& name, uint32_t ids, uint32_t table,
                                 float scale) {
  const uint32_t y = like(name, ids, graph_.tensor(table).width);
  schema::EmbeddingOptionsT options;
  options.scale = scale;
  step(schema::OpCode::Embedding, {ids, table}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::partial_embedding(const std::string& name, uint32_t ids, uint32_t table,
                                         uint32_t first, float scale) {
  const uint32_t y = like(name, ids, graph_.tensor(table).width);
  schema::EmbeddingOptionsT options;
  options.scale = scale;
  options.first = first;
  options.partial = true;
  step(schema::OpCode::Embedding, {ids, table}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::layer_norm(const std::string& name, uint32_t x, uint32_t weight,
                                  uint32_t bias, float epsilon, uint32_t groups) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  schema::LayerNormOptionsT options;
  options.epsilon = epsilon;
  options.groups = groups;
  std::vector<uint32_t> inputs = {x};
  if (weight != kNone) inputs.insert(inputs.end(), {weight, bias});
  step(schema::OpCode::LayerNorm, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::deviation_norm(const std::string& name, uint32_t x, uint32_t weight,
                                      uint32_t bias, float epsilon) {
  const uint32_t y = layer_norm(name, x, weight, bias, epsilon);
  entry().steps.back()->options.AsLayerNormOptions()->deviation = true;
  return y;
}

uint32_t GraphBuilder::rms_norm(const std::string& name, uint32_t x, uint32_t weight, float epsilon,
                                uint32_t groups) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  schema::RmsNormOptionsT options;
  options.epsilon = epsilon;
  options.groups = groups;
  std::vector<uint32_t> inputs = {x};
  if (weight != kNone) inputs.push_back(weight);
  step(schema::OpCode::RmsNorm, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

void GraphBuilder::linear_step(uint32_t x, uint32_t weight, uint32_t bias, uint32_t y) {
  require(graph_.tensor(x).width == graph_.tensor(weight).width,
          graph_.tensor(weight).name + " does not fit its input");
  schema::LinearOptionsT options;
  options.has_bias = bias != kNone;
  std::vector<uint32_t> inputs = {x, weight};
  if (bias != kNone) inputs.push_back(bias);
  step(schema::OpCode::Linear, std::move(inputs), {y}).options.Set(std::move(options));
}

uint32_t GraphBuilder::linear(const std::string& name, uint32_t x, uint32_t weight, uint32_t bias) {
  const uint32_t y = like(name, x, graph_.tensor(weight).rows);
  linear_step(x, weight, bias, y);
  return y;
}

uint32_t GraphBuilder::activate(const std::string& name, uint32_t x, schema::Activation function,
                                float limit) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  schema::ActivateOptionsT options;
  options.activation = function;
  options.limit = limit;
  step(schema::OpCode::Activate, {x}, {y}).options.Set(std::move(options));
  return y;
}

void GraphBuilder::require_fit(const std::string& name, uint32_t a, uint32_t b) const {
  const schema::TensorT &one = graph_.tensor(a), &other = graph_.tensor(b);
  const bool one_row = other.rows == 1 && other.rows_symbol < 0;
  require(one.width % other.width == 0 && (one_row || one.rows_symbol == other.rows_symbol),
          name + " takes tensors of different shapes");
}

uint32_t GraphBuilder::add(const std::string& name, uint32_t a, uint32_t b) {
  require_fit(name, a, b);
  const uint32_t y = like(name, a, graph_.tensor(a).width);
  step(schema::OpCode::Add, {a, b}, {y});
  return y;
}

uint32_t GraphBuilder::multiply(const std::string& name, uint32_t a, uint32_t b) {
  require_fit(name, a, b);
  const uint32_t y = like(name, a, graph_.tensor(a).width);
  step(schema::OpCode::Multiply, {a, b}, {y});
  return y;
}

uint32_t GraphBuilder::attention(const std::string& name, uint32_t q, const Attention& from,
                                 uint32_t* log_sums) {
  schema::AttentionOptionsT options;
  options.heads = from.heads;
  options.kv_heads = from.kv_heads;
  options.sources = static_cast<uint32_t>(from.sources.size());
  options.scale = from.scale;
  options.own = from.own;
  options.pattern = std::make_unique<schema::PatternT>(from.pattern);
  options.relative_zero = from.relative_zero;
  options.mask_queries = from.mask_queries;
  options.mask_keeps_own = from.mask_keeps_own;
  std::vector<uint32_t> inputs = {q};
  for (const Source& source : from.sources) {
    inputs.push_back(source.k);
    inputs.push_back(source.v);
  }
  if (from.relative) {
    options.relative = true;
    inputs.insert(inputs.end(),
                  {from.relative->table, from.relative->bias, from.relative->query_bias});
  }
  const auto optional_input = [&](uint32_t tensor) {
    if (tensor != kNone) inputs.push_back(tensor);
    return tensor != kNone;
  };
  options.distance_bias = optional_input(from.distance_bias);
  options.alibi = optional_input(from.alibi);
  if (from.segments) {
    options.segments = true;
    inputs.insert(inputs.end(), {from.segments->types, from.segments->table, from.segments->bias});
  }
  options.key_mask = optional_input(from.key_mask);
  options.globals = optional_input(from.globals);
  options.pinned_query = optional_input(from.pinned_query);
  options.relative_keys = from.relative_keys;
  options.rooms = static_cast<uint32_t>(from.rooms.size());
  inputs.insert(inputs.end(), from.rooms.begin(), from.rooms.end());
  if (from.adaptive_span) {
    auto term = std::make_unique<schema::ScoreTermT>();
    term->kind = schema::TermKind::AdaptiveSpan;
    term->inputs = 1;
    term->ramp = from.adaptive_span->ramp;
    term->first = from.adaptive_span->first;
    options.terms.push_back(std::move(term));
    inputs.push_back(from.adaptive_span->spans);
  }
  if (from.groups) {
    auto term = std::make_unique<schema::ScoreTermT>();
    term->kind = schema::TermKind::Groups;
    term->query_length = from.groups->query_length;
    term->query_dimensions = from.groups->query_dimensions;
    term->key_length = from.groups->key_length;
    term->key_dimensions = from.groups->key_dimensions;
    term->inputs = optional_input(from.groups->shape) ? 1 : 0;
    options.terms.push_back(std::move(term));
  }
  if (from.sides) {
    auto term = std::make_unique<schema::ScoreTermT>();
    term->kind = schema::TermKind::Sides;
    term->inputs = 1;
    term->length = from.sides->length;
    term->zero = from.sides->zero;
    options.terms.push_back(std::move(term));
    inputs.push_back(from.sides->bias);
  }
  const auto add_term = [&](schema::TermKind kind, std::vector<uint32_t> tensors) {
    auto term = std::make_unique<schema::ScoreTermT>();
    term->kind = kind;
    term->inputs = static_cast<uint32_t>(tensors.size());
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
    options.terms.push_back(std::move(term));
    return options.terms.back().get();
  };
  if (from.blocks != kNone) add_term(schema::TermKind::Blocks, {from.blocks});
  if (from.order != kNone) add_term(schema::TermKind::Order, {from.order});
  if (from.own_score) add_term(schema::TermKind::OwnScore, {})->value = *from.own_score;
  const uint32_t value_width = graph_.tensor(from.sources.at(0).v).width / from.kv_heads;
  std::vector<uint32_t> outputs = {like(name, q, from.heads * value_width)};
  if (log_sums != nullptr) {
    *log_sums = like(name + ".log_sums", q, from.heads);
    outputs.push_back(*log_sums);
  }
  const uint32_t y = outputs[0];
  step(schema::OpCode::Attention, std::move(inputs), std::move(outputs))
      .options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::mix_attention(const std::string& name, const std::vector<Mixed>& parts) {
  std::vector<uint32_t> inputs;
  for (const Mixed& part : parts) inputs.insert(inputs.end(), {part.x, part.log_sums});
  const uint32_t y = like(name, parts.at(0).x, graph_.tensor(parts.at(0).x).width);
  step(schema::OpCode::MixAttention, std::move(inputs), {y});
  return y;
}

uint32_t GraphBuilder::rope_angles(const std::string& name, uint32_t frequencies, uint32_t last,
                                   uint32_t like_rows) {
  const uint32_t y =
      like(name, like_rows == kNone ? tokens_ : like_rows, 2 * graph_.tensor(frequencies).width);
  schema::RopeAnglesOptionsT options;
  options.last = last;
  step(schema::OpCode::RopeAngles, {frequencies}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::rope(const std::string& name, uint32_t x, uint32_t angles, uint32_t heads,
                            bool adjacent) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  schema::RopeOptionsT options;
  options.heads = heads;
  options.adjacent = adjacent;
  step(schema::OpCode::Rope, {x, angles}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::positions(const std::string& name, uint32_t limit,
                                 const schema::PositionsOptionsT& options, uint32_t tokens) {
  if (tokens == kNone) tokens = tokens_;
  const uint32_t y = like(name, tokens, 1);
  set_ids(y, limit);
  step(schema::OpCode::Positions, {tokens}, {y}).options.Set(schema::PositionsOptionsT(options));
  return y;
}

uint32_t GraphBuilder::token_mask(const std::string& name, uint32_t pad_token) {
  const uint32_t y = ids(name, 2);
  schema::TokenMaskOptionsT options;
  options.pad_token = pad_token;
  step(schema::OpCode::TokenMask, {tokens_}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::mask_rows(const std::string& name, uint32_t x, uint32_t mask) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::MaskRows, {x, mask}, {y});
  return y;
}

uint32_t GraphBuilder::select_rows(const std::string& name, uint32_t x, uint32_t mask,
                                   uint32_t rows_symbol) {
  const uint32_t y = activation(name, rows_symbol, graph_.tensor(x).width);
  step(schema::OpCode::SelectRows, {x, mask}, {y});
  return y;
}

uint32_t GraphBuilder::merge_rows(const std::string& name, uint32_t x, uint32_t rows,
                                  uint32_t mask) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::MergeRows, {x, rows, mask}, {y});
  return y;
}

uint32_t GraphBuilder::pad_rows(const std::string& name, uint32_t x, uint32_t rows_symbol,
                                const schema::PadRowsOptionsT& options) {
  const uint32_t y = activation(name, rows_symbol, 1);
  set_ids(y, graph_.tensor(x).limit);
  step(schema::OpCode::PadRows, {x}, {y}).options.Set(schema::PadRowsOptionsT(options));
  return y;
}

uint32_t GraphBuilder::hash_buckets(const std::string& name, uint32_t x, uint32_t rotations,
                                    uint32_t mask, uint32_t rows_symbol,
                                    const schema::HashBucketsOptionsT& from) {
  schema::HashBucketsOptionsT options = from;
  options.has_mask = mask != kNone;
  uint32_t limit = 1;
  for (const uint32_t factor : options.buckets) limit *= factor;
  const uint32_t y = activation(name, rows_symbol, 1);
  set_ids(y, (limit + 1) * options.rounds);
  std::vector<uint32_t> inputs = {x, rotations};
  if (mask != kNone) inputs.push_back(mask);
  step(schema::OpCode::HashBuckets, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::sort_rows(const std::string& name, uint32_t keys, uint32_t given,
                                 uint32_t rows_symbol, uint32_t lists) {
  const uint32_t y = activation(name, rows_symbol, 1);
  set_ids(y, graph_.tensor(keys).rows / lists);
  schema::SortRowsOptionsT options;
  options.lists = lists;
  std::vector<uint32_t> inputs = {keys};
  if (given != kNone) inputs.push_back(given);
  step(schema::OpCode::SortRows, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::slice_columns(const std::string& name, uint32_t x, uint32_t first,
                                     uint32_t width) {
  const uint32_t y = like(name, x, width);
  schema::SliceColumnsOptionsT options;
  options.first = first;
  step(schema::OpCode::SliceColumns, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::concat_columns(const std::string& name, const std::vector<uint32_t>& parts) {
  uint32_t width = 0;
  for (const uint32_t part : parts) width += graph_.tensor(part).width;
  const uint32_t y = like(name, parts.at(0), width);
  step(schema::OpCode::ConcatColumns, parts, {y});
  return y;
}

uint32_t GraphBuilder::convolution(const std::string& name, uint32_t x, uint32_t kernel,
                                   uint32_t memory, schema::ConvolutionOptionsT options,
                                   uint32_t bias) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  std::vector<uint32_t> inputs = {x, kernel};
  if (memory != kNone) inputs.push_back(memory);
  if (bias != kNone) inputs.push_back(bias);
  options.has_memory = memory != kNone;
  options.has_bias = bias != kNone;
  step(schema::OpCode::Convolution, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::lerp(const std::string& name, uint32_t a, uint32_t b, uint32_t mix) {
  const uint32_t y = like(name, a, graph_.tensor(a).width);
  step(schema::OpCode::Lerp, {a, b, mix}, {y});
  return y;
}

std::vector<uint32_t> GraphBuilder::scan(const std::string& name,
                                         const schema::ScanOptionsT& options,
                                         std::vector<uint32_t> inputs,
                                         const std::vector<uint32_t>& states) {
  const size_t count = options.rule == schema::ScanRule::ExponentialGates ? 3 : 1;
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back(like(i == 0 ? name : name + "." + std::to_string(i), inputs.at(0),
                        graph_.tensor(inputs.at(0)).width));
  }
  std::vector<uint32_t> outputs = rows;
  inputs.insert(inputs.end(), states.begin(), states.end());
  outputs.insert(outputs.end(), states.begin(), states.end());
  step(schema::OpCode::Scan, std::move(inputs), std::move(outputs))
      .options.Set(schema::ScanOptionsT(options));
  return rows;
}

uint32_t GraphBuilder::gru_gate(const std::string& name, uint32_t input_gates,
                                uint32_t hidden_gates, uint32_t x) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::GruGate, {input_gates, hidden_gates, x}, {y});
  return y;
}

uint32_t GraphBuilder::ring_evict(const std::string& name, uint32_t rows, uint32_t memory,
                                  uint32_t groups_symbol,
                                  const schema::RingEvictOptionsT& options) {
  const uint32_t y = activation(name, groups_symbol, graph_.tensor(memory).width * options.group);
  step(schema::OpCode::RingEvict, {rows, memory}, {y})
      .options.Set(schema::RingEvictOptionsT(options));
  return y;
}

void GraphBuilder::assign(uint32_t state, uint32_t x) {
  require(graph_.tensor(state).rows == graph_.tensor(x).rows && graph_.tensor(x).rows_symbol < 0 &&
              graph_.tensor(state).width == graph_.tensor(x).width,
          graph_.tensor(state).name + " is assigned another shape");
  step(schema::OpCode::TakeRows, {x}, {state}).options.Set(schema::TakeRowsOptionsT());
}

void GraphBuilder::ring_push(const std::vector<uint32_t>& rows, const std::vector<uint32_t>& states,
                             const schema::RingPushOptionsT& options) {
  require(rows.size() == states.size() && !rows.empty(), "ring_push needs one tensor per state");
  step(schema::OpCode::RingPush, rows, states).options.Set(schema::RingPushOptionsT(options));
}

uint32_t GraphBuilder::pool(const std::string& name, uint32_t x, uint32_t group,
                            schema::Pooling pooling, bool neighbours) {
  require(graph_.tensor(x).width % group == 0, name + " pools a width that is no multiple");
  const uint32_t y = like(name, x, graph_.tensor(x).width / group);
  schema::PoolOptionsT options;
  options.pooling = pooling;
  options.group = group;
  options.neighbours = neighbours;
  step(schema::OpCode::Pool, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::pool_rows(const std::string& name, const PoolRows& from,
                                 uint32_t rows_symbol) {
  const uint32_t width = graph_.tensor(from.x.at(0)).width;
  const uint32_t y = rows_symbol == kNone ? tensor(name, schema::TensorKind::Activation, 1, width)
                                          : activation(name, rows_symbol, width);
  schema::PoolRowsOptionsT options;
  options.group = from.group;
  options.front = from.front;
  options.mean = from.mean;
  options.joins = from.joins;
  options.two = from.x.size() == 2;
  std::vector<uint32_t> inputs = from.x;
  const auto optional_input = [&](uint32_t tensor) {
    if (tensor != kNone) inputs.push_back(tensor);
    return tensor != kNone;
  };
  options.has_factors = optional_input(from.factors);
  options.has_mask = optional_input(from.mask);
  options.has_shape = optional_input(from.shape);
  step(schema::OpCode::PoolRows, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::repeat_rows(const std::string& name, uint32_t x, uint32_t like_rows,
                                   uint32_t group, int32_t offset) {
  const uint32_t y = like(name, like_rows, graph_.tensor(x).width);
  schema::RepeatRowsOptionsT options;
  options.group = group;
  options.offset = offset;
  step(schema::OpCode::RepeatRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::shaped_rows(const std::string& name, uint32_t x, int32_t offset,
                                   uint32_t shape, uint32_t length, uint32_t rows_symbol) {
  const uint32_t y = activation(name, rows_symbol, graph_.tensor(x).width);
  schema::RepeatRowsOptionsT options;
  options.offset = offset;
  options.has_shape = true;
  options.length = length;
  step(schema::OpCode::RepeatRows, {x, shape}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::first_rows(const std::string& name, uint32_t x, uint32_t like_rows) {
  const uint32_t y = like(name, like_rows, graph_.tensor(x).width);
  schema::TakeRowsOptionsT options;
  options.from_start = true;
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

GraphBuilder::Halted GraphBuilder::halt(const std::string& name, uint32_t p, uint32_t x,
                                        const Halted& before, float threshold,
                                        uint32_t rows_symbol) {
  const bool first = before.counts == kNone;
  const uint32_t rows = first ? x : before.counts, width = graph_.tensor(x).width;
  const Halted after = {like(name + ".counts", rows, 3), like(name + ".mix", rows, width),
                        activation(name + ".x", rows_symbol, width)};
  schema::HaltOptionsT options;
  options.threshold = threshold;
  std::vector<uint32_t> inputs = {p, x};
  if (!first) inputs.insert(inputs.end(), {before.counts, before.mix});
  step(schema::OpCode::Halt, std::move(inputs), {after.counts, after.mix, after.x})
      .options.Set(std::move(options));
  return after;
}

GraphBuilder::Route GraphBuilder::route(const std::string& name, uint32_t scores) {
  const Route route = {like(name + ".routes", scores, 1), like(name + ".chosen", scores, 2)};
  graph_.tensor(route.routes).type = schema::DataType::I32;
  graph_.tensor(route.routes).limit = graph_.tensor(scores).width;
  step(schema::OpCode::Route, {scores}, {route.routes, route.chosen});
  return route;
}

uint32_t GraphBuilder::routed_linear(const std::string& name, uint32_t x, uint32_t routes,
                                     uint32_t weight, uint32_t bias, uint32_t experts,
                                     uint32_t width) {
  const uint32_t y = like(name, x, width);
  schema::RoutedLinearOptionsT options;
  options.experts = experts;
  options.has_bias = bias != kNone;
  std::vector<uint32_t> inputs = {x, routes, weight};
  if (bias != kNone) inputs.push_back(bias);
  step(schema::OpCode::RoutedLinear, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::recurrence(const std::string& name, const Recurrence& from) {
  schema::RecurrenceOptionsT options;
  options.heads = from.heads;
  options.key_heads = from.key_heads;
  options.delta = from.delta;
  options.read_before = from.read_before;
  options.normaliser = from.normaliser;
  options.epsilon = from.epsilon;
  std::vector<uint32_t> inputs, outputs;
  const auto optional_input = [&](uint32_t tensor) {
    if (tensor != kNone) inputs.push_back(tensor);
    return tensor != kNone;
  };
  options.reads = optional_input(from.q);
  options.writes = optional_input(from.k) && optional_input(from.v);
  inputs.push_back(from.state);
  options.has_decay = optional_input(from.decay);
  options.has_factor = optional_input(from.factor);
  options.rank_one = optional_input(from.a) && optional_input(from.b);
  const bool normalised = optional_input(from.normaliser_state);
  optional_input(from.floor);
  uint32_t y = kNone;
  if (options.reads) {
    y = like(name, from.q, from.heads * graph_.tensor(from.state).width);
    outputs.push_back(y);
  }
  if (options.writes) {
    outputs.push_back(from.state);
    if (normalised) outputs.push_back(from.normaliser_state);
  }
  step(schema::OpCode::Recurrence, std::move(inputs), std::move(outputs))
      .options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::retention(const std::string& name, uint32_t q, uint32_t k, uint32_t v,
                                 uint32_t decay, const schema::RetentionOptionsT& options) {
  const uint32_t y = like(name, v, graph_.tensor(v).width);
  step(schema::OpCode::Retention, {q, k, v, decay}, {y})
      .options.Set(schema::RetentionOptionsT(options));
  return y;
}

uint32_t GraphBuilder::feature_map(const std::string& name, uint32_t x,
                                   const schema::FeatureMapOptionsT& options) {
  const uint32_t y = like(name, x, 2 * graph_.tensor(x).width * options.order);
  step(schema::OpCode::FeatureMap, {x}, {y}).options.Set(schema::FeatureMapOptionsT(options));
  return y;
}

uint32_t GraphBuilder::patches(const std::string& name, uint32_t x,
                               const schema::PatchesOptionsT& options) {
  const uint32_t across =
      (options.width + 2 * options.pad_x - options.patch_width) / options.stride_x + 1;
  const uint32_t down =
      (options.height + 2 * options.pad_y - options.patch_height) / options.stride_y + 1;
  const uint32_t y = tensor(name, schema::TensorKind::Activation, across * down,
                            options.channels * options.patch_height * options.patch_width);
  step(schema::OpCode::Patches, {x}, {y}).options.Set(schema::PatchesOptionsT(options));
  return y;
}

uint32_t GraphBuilder::concat_rows(const std::string& name, const std::vector<uint32_t>& parts) {
  uint32_t rows = 0;
  for (const uint32_t part : parts) rows += graph_.tensor(part).rows;
  const uint32_t y =
      tensor(name, schema::TensorKind::Activation, rows, graph_.tensor(parts.at(0)).width);
  step(schema::OpCode::ConcatRows, parts, {y});
  return y;
}

uint32_t GraphBuilder::mean_rows(const std::string& name, uint32_t x, uint32_t count,
                                 uint32_t group) {
  schema::PatchesOptionsT options;
  options.channels = graph_.tensor(x).width;
  options.height = options.patch_height = options.stride_y = 1;
  options.width = count * group;
  options.patch_width = options.stride_x = group;
  return pool(name, patches(name + ".groups", x, options), group, schema::Pooling::Mean);
}

uint32_t GraphBuilder::fourier(const std::string& name, uint32_t x) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::Fourier, {x}, {y});
  return y;
}

uint32_t GraphBuilder::landmark_inverse(const std::string& name, uint32_t q, uint32_t k, uint32_t x,
                                        uint32_t sums, schema::LandmarkInverseOptionsT options,
                                        uint32_t* divisor) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  *divisor = tensor(name + ".divisor", schema::TensorKind::Activation, 1, 1);
  options.has_sums = sums != kNone;
  std::vector<uint32_t> inputs = {q, k, x};
  if (sums != kNone) inputs.push_back(sums);
  step(schema::OpCode::LandmarkInverse, std::move(inputs), {y, *divisor})
      .options.Set(std::move(options));
  return y;
}

void GraphBuilder::debug_output(uint32_t x, const std::string& name) {
  graph_.debug_outputs.push_back(
      {graph_.model.entry_points.size() - 1, x, name.empty() ? graph_.tensor(x).name : name});
}

uint32_t GraphBuilder::take_rows(const std::string& name, uint32_t x) {
  const uint32_t y = activation(name, output_symbol_, graph_.tensor(x).width);
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(schema::TakeRowsOptionsT());
  return y;
}

uint32_t GraphBuilder::token_rows(const std::string& name, uint32_t x) {
  const uint32_t y = activation(name, tokens_symbol_, graph_.tensor(x).width);
  schema::TakeRowsOptionsT options;
  options.from_start = true;
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::first_row(const std::string& name, uint32_t x) {
  const uint32_t y = tensor(name, schema::TensorKind::Activation, 1, graph_.tensor(x).width);
  schema::TakeRowsOptionsT options;
  options.from_start = true;
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

void GraphBuilder::set_output(uint32_t y) {
  graph_.tensor(y).kind = schema::TensorKind::Output;
  entry().logits = y;
  has_output_ = true;
}

void GraphBuilder::logits(uint32_t x, uint32_t weight, uint32_t bias, float soft_cap) {
  const uint32_t y = like("logits", x, graph_.tensor(weight).rows);
  linear_step(x, weight, bias, y);
  if (soft_cap != 0.0f) {
    schema::LinearOptionsT& options = *entry().steps.back()->options.AsLinearOptions();
    options.activation = schema::Activation::SoftCap;
    options.limit = soft_cap;
  }
  set_output(y);
}

void GraphBuilder::adaptive_logits(uint32_t head, const std::vector<uint32_t>& clusters) {
  uint32_t words = graph_.tensor(head).width - static_cast<uint32_t>(clusters.size());
  std::vector<uint32_t> inputs = {head};
  for (const uint32_t cluster : clusters) {
    words += graph_.tensor(cluster).width;
    inputs.push_back(cluster);
  }
  const uint32_t y = like("logits", head, words);
  step(schema::OpCode::AdaptiveSoftmax, std::move(inputs), {y});
  set_output(y);
}

void GraphBuilder::output(const std::string& name, uint32_t x) {
  // A copy, so that nobody who reads x makes it int8.
  const bool by_tokens = graph_.tensor(x).rows_symbol == static_cast<int32_t>(tokens_symbol_);
  const uint32_t y = by_tokens ? take_rows(name, x) : like(name, x, graph_.tensor(x).width);
  if (!by_tokens) {
    step(schema::OpCode::TakeRows, {x}, {y}).options.Set(schema::TakeRowsOptionsT());
  }
  if (has_output_) {
    entry().outputs.push_back(y);
  } else {
    set_output(y);
  }
}

}  // namespace oxbow::convert
