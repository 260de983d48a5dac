// GraphBuilder: layers that look at one row at a time, and convolutions.

#include <memory>

#include "converter/graph.h"

namespace oxbow::convert {

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

uint32_t GraphBuilder::fourier(const std::string& name, uint32_t x) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::Fourier, {x}, {y});
  return y;
}

}  // namespace oxbow::convert
