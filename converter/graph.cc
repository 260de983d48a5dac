#include "converter/graph.h"

#include <memory>
#include <stdexcept>

namespace oxbow::convert {
void GraphBuilder::require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("graph: " + what);
}

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

void GraphBuilder::debug_output(uint32_t x, const std::string& name) {
  graph_.debug_outputs.push_back(
      {graph_.model.entry_points.size() - 1, x, name.empty() ? graph_.tensor(x).name : name});
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
