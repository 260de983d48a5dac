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

GraphBuilder::GraphBuilder(Graph& graph, const std::string& entry_name, uint32_t max_segment,
                           uint32_t vocabulary)
    : graph_(graph) {
  graph_.model.entry_points.push_back(std::make_unique<schema::EntryPointT>());
  graph_.entry().name = entry_name;
  tokens_symbol_ = symbol("tokens", max_segment);
  logits_symbol_ = symbol("logits_rows", max_segment);
  tokens_ = activation("tokens", static_cast<int32_t>(tokens_symbol_), 1);
  schema::TensorT& tokens = graph_.tensor(tokens_);
  tokens.kind = schema::TensorKind::Input;
  tokens.type = schema::DataType::I32;
  tokens.limit = vocabulary;
  graph_.entry().tokens = tokens_;
}

uint32_t GraphBuilder::symbol(const std::string& name, uint32_t max) {
  auto symbol = std::make_unique<schema::SymbolT>();
  symbol->name = name;
  symbol->max = max;
  graph_.model.symbols.push_back(std::move(symbol));
  return static_cast<uint32_t>(graph_.model.symbols.size() - 1);
}

uint32_t GraphBuilder::ring(const std::string& name, uint32_t capacity) {
  auto ring = std::make_unique<schema::RingT>();
  ring->name = name;
  ring->capacity = capacity;
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
  graph_.weights[index] = std::move(values);
  return index;
}

uint32_t GraphBuilder::ring_state(const std::string& name, uint32_t ring, uint32_t width) {
  const uint32_t index =
      tensor(name, schema::TensorKind::State, graph_.model.rings.at(ring)->capacity, width);
  graph_.tensor(index).ring = static_cast<int32_t>(ring);
  return index;
}

uint32_t GraphBuilder::activation(const std::string& name, int32_t rows_symbol, uint32_t width) {
  const uint32_t rows = graph_.model.symbols.at(static_cast<size_t>(rows_symbol))->max;
  const uint32_t index = tensor(name, schema::TensorKind::Activation, rows, width);
  graph_.tensor(index).rows_symbol = rows_symbol;
  return index;
}

schema::StepT& GraphBuilder::step(schema::OpCode op, std::vector<uint32_t> inputs,
                                  std::vector<uint32_t> outputs) {
  auto step = std::make_unique<schema::StepT>();
  step->op = op;
  step->inputs = std::move(inputs);
  step->outputs = std::move(outputs);
  graph_.entry().steps.push_back(std::move(step));
  return *graph_.entry().steps.back();
}

uint32_t GraphBuilder::embedding(const std::string& name, uint32_t table, float scale) {
  const uint32_t y =
      activation(name, static_cast<int32_t>(tokens_symbol_), graph_.tensor(table).width);
  schema::EmbeddingOptionsT options;
  options.scale = scale;
  step(schema::OpCode::Embedding, {tokens_, table}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::layer_norm(const std::string& name, uint32_t x, uint32_t weight,
                                  uint32_t bias, float epsilon) {
  const uint32_t y = activation(name, graph_.tensor(x).rows_symbol, graph_.tensor(x).width);
  schema::LayerNormOptionsT options;
  options.epsilon = epsilon;
  step(schema::OpCode::LayerNorm, {x, weight, bias}, {y}).options.Set(std::move(options));
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
  const uint32_t y = activation(name, graph_.tensor(x).rows_symbol, graph_.tensor(weight).rows);
  linear_step(x, weight, bias, y);
  return y;
}

uint32_t GraphBuilder::activate(const std::string& name, uint32_t x, schema::Activation function) {
  const uint32_t y = activation(name, graph_.tensor(x).rows_symbol, graph_.tensor(x).width);
  schema::ActivateOptionsT options;
  options.activation = function;
  step(schema::OpCode::Activate, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::add(const std::string& name, uint32_t a, uint32_t b) {
  require(graph_.tensor(a).width == graph_.tensor(b).width &&
              graph_.tensor(a).rows_symbol == graph_.tensor(b).rows_symbol,
          name + " adds tensors of different shapes");
  const uint32_t y = activation(name, graph_.tensor(a).rows_symbol, graph_.tensor(a).width);
  step(schema::OpCode::Add, {a, b}, {y});
  return y;
}

uint32_t GraphBuilder::attention(const std::string& name, uint32_t q,
                                 const std::vector<Source>& sources, uint32_t heads,
                                 uint32_t kv_heads, float scale, const Relative* relative) {
  schema::AttentionOptionsT options;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.sources = static_cast<uint32_t>(sources.size());
  options.scale = scale;
  options.relative = relative != nullptr;
  std::vector<uint32_t> inputs = {q};
  for (const Source& source : sources) {
    inputs.push_back(source.k);
    inputs.push_back(source.v);
  }
  if (relative != nullptr) {
    inputs.insert(inputs.end(), {relative->table, relative->bias, relative->query_bias});
  }
  const uint32_t y = activation(name, graph_.tensor(q).rows_symbol, graph_.tensor(q).width);
  step(schema::OpCode::Attention, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::ring_evict(const std::string& name, uint32_t rows, uint32_t memory,
                                  uint32_t group, uint32_t groups_symbol) {
  const uint32_t y =
      activation(name, static_cast<int32_t>(groups_symbol), graph_.tensor(memory).width * group);
  schema::RingEvictOptionsT options;
  options.group = group;
  step(schema::OpCode::RingEvict, {rows, memory}, {y}).options.Set(std::move(options));
  return y;
}

void GraphBuilder::ring_push(const std::vector<uint32_t>& rows, const std::vector<uint32_t>& states,
                             uint32_t group) {
  require(rows.size() == states.size() && !rows.empty(), "ring_push needs one tensor per state");
  schema::RingPushOptionsT options;
  options.group = group;
  step(schema::OpCode::RingPush, rows, states).options.Set(std::move(options));
}

uint32_t GraphBuilder::pool(const std::string& name, uint32_t x, uint32_t group,
                            schema::Pooling pooling) {
  require(graph_.tensor(x).width % group == 0, name + " pools a width that is no multiple");
  const uint32_t y = activation(name, graph_.tensor(x).rows_symbol, graph_.tensor(x).width / group);
  schema::PoolOptionsT options;
  options.pooling = pooling;
  options.group = group;
  step(schema::OpCode::Pool, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::take_rows(const std::string& name, uint32_t x) {
  const uint32_t y = activation(name, static_cast<int32_t>(logits_symbol_), graph_.tensor(x).width);
  step(schema::OpCode::TakeRows, {x}, {y});
  return y;
}

void GraphBuilder::logits(uint32_t x, uint32_t weight, uint32_t bias) {
  const uint32_t y =
      activation("logits", static_cast<int32_t>(logits_symbol_), graph_.tensor(weight).rows);
  graph_.tensor(y).kind = schema::TensorKind::Output;
  linear_step(x, weight, bias, y);
  graph_.entry().logits = y;
}

}  // namespace oxbow::convert
