// GraphBuilder: attention, and what is remembered.

#include <memory>

#include "converter/graph.h"

namespace oxbow::convert {

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

uint32_t GraphBuilder::most_used(const std::string& name, const MostUsed& from,
                                 uint32_t groups_symbol, const schema::MostUsedOptionsT& options) {
  const uint32_t y = activation(name, groups_symbol, graph_.tensor(from.memory).width);
  step(schema::OpCode::MostUsed,
       {from.q, from.log_sums, from.k, from.x, from.key_memory, from.memory, from.relative.table,
        from.relative.bias, from.relative.query_bias, from.usage},
       {y, from.usage})
      .options.Set(schema::MostUsedOptionsT(options));
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

}  // namespace oxbow::convert
