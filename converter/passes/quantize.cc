// Decides the type of every tensor.
//
//   weights        matrices of linear steps: int8 in blocks, one scale per output channel
//                  embedding tables: int8 rows, one scale per row
//                  norms, biases and everything small: float
//   activations    what enters an int8 matrix: int8, one scale per row. A step that can write int8
//                  does so when all its readers want it; otherwise one quantise step serves them.
//                  keys and values, fresh and remembered: int8, one scale per row and head
//                  other memories: int8, one scale per row
//                  tables of relative positions: int8, one scale per row and head
//                  the residual stream, queries and logits: float

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>

#include "converter/passes/passes.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::OpCode;

/// A step that reads a tensor, and as which of its inputs.
struct Reader {
  const schema::StepT* step;
  size_t input;
};

void make_i8(schema::TensorT& tensor, uint32_t scale_groups,
             schema::Layout layout = schema::Layout::RowMajor) {
  tensor.type = DataType::I8;
  tensor.layout = layout;
  tensor.scale_groups = scale_groups;
}

bool is_key_or_value(const Reader& reader) {
  return reader.step->op == OpCode::Attention && reader.input >= 1 &&
         reader.input <= 2 * reader.step->options.AsAttentionOptions()->sources;
}

class Quantizer {
 public:
  explicit Quantizer(Graph& graph) : graph_(graph) { index(); }

  void weights() {
    split_shared_tables();
    for (const auto& step : graph_.entry().steps) {
      if (step->op == OpCode::Linear) {
        make_i8(graph_.tensor(step->inputs[1]), 1, schema::Layout::Block8x4);
      } else if (step->op == OpCode::Embedding) {
        make_i8(graph_.tensor(step->inputs[1]), 1);
      }
    }
  }

  void activations() {
    states_and_tables();
    for (uint32_t i = 0; i < producers_.size(); ++i) {
      if (graph_.tensor(i).kind == schema::TensorKind::Activation) keys_and_values(i);
    }
    // Quantise steps are added to the list, so collect the tensors first.
    const uint32_t count = static_cast<uint32_t>(graph_.model.tensors.size());
    for (uint32_t i = 0; i < count; ++i) matrix_input(i);
  }

 private:
  void index() {
    readers_.assign(graph_.model.tensors.size(), {});
    producers_.assign(graph_.model.tensors.size(), nullptr);
    for (const auto& step : graph_.entry().steps) {
      for (size_t i = 0; i < step->inputs.size(); ++i) {
        readers_[step->inputs[i]].push_back({step.get(), i});
      }
      for (const uint32_t output : step->outputs) producers_[output] = step.get();
    }
  }

  /// A table that is also a matrix (tied weights) needs both layouts: the embedding gets its own
  /// copy.
  void split_shared_tables() {
    for (auto& step : graph_.entry().steps) {
      if (step->op != OpCode::Embedding) continue;
      const uint32_t table = step->inputs[1];
      const bool shared = std::any_of(readers_[table].begin(), readers_[table].end(),
                                      [](const Reader& r) { return r.step->op == OpCode::Linear; });
      if (!shared) continue;
      auto copy = std::make_unique<schema::TensorT>();
      copy->name = graph_.tensor(table).name + ".embedding";
      copy->kind = schema::TensorKind::Weight;
      copy->rows = graph_.tensor(table).rows;
      copy->width = graph_.tensor(table).width;
      const uint32_t added = static_cast<uint32_t>(graph_.model.tensors.size());
      graph_.model.tensors.push_back(std::move(copy));
      graph_.weights[added] = graph_.weights.at(table);
      step->inputs[1] = added;
    }
    index();
  }

  void states_and_tables() {
    for (uint32_t i = 0; i < readers_.size(); ++i) {
      schema::TensorT& tensor = graph_.tensor(i);
      if (tensor.kind == schema::TensorKind::State) {
        uint32_t groups = 1;
        for (const Reader& reader : readers_[i]) {
          if (is_key_or_value(reader)) groups = reader.step->options.AsAttentionOptions()->kv_heads;
        }
        make_i8(tensor, groups);
      } else if (tensor.kind == schema::TensorKind::Weight) {
        for (const Reader& reader : readers_[i]) {
          if (reader.step->op != OpCode::Attention) continue;
          const schema::AttentionOptionsT& options = *reader.step->options.AsAttentionOptions();
          if (options.relative && reader.input == 1 + 2 * options.sources) {
            make_i8(tensor, options.heads);
          }
        }
      }
    }
  }

  /// Keys and values of this run: attention wants them as the memories hold them.
  void keys_and_values(uint32_t index) {
    schema::TensorT& tensor = graph_.tensor(index);
    if (producers_[index] == nullptr || producers_[index]->op != OpCode::Linear) return;
    std::set<uint32_t> wanted;
    for (const Reader& reader : readers_[index]) {
      if (is_key_or_value(reader)) {
        wanted.insert(reader.step->options.AsAttentionOptions()->kv_heads);
      } else if (reader.step->op == OpCode::RingPush) {
        wanted.insert(graph_.tensor(reader.step->outputs[reader.input]).scale_groups);
      } else {
        return;
      }
    }
    if (wanted.size() == 1) make_i8(tensor, *wanted.begin());
  }

  bool wants_i8(const Reader& reader) const {
    return reader.step->op == OpCode::Linear && reader.input == 0 &&
           graph_.tensor(reader.step->inputs[1]).type == DataType::I8;
  }

  void matrix_input(uint32_t index) {
    const std::vector<Reader> readers = readers_[index];
    const size_t wanting = static_cast<size_t>(std::count_if(
        readers.begin(), readers.end(), [&](const Reader& reader) { return wants_i8(reader); }));
    if (wanting == 0) return;
    const schema::StepT* producer = producers_[index];
    if (producer == nullptr) throw std::logic_error("a linear step reads what no step writes");
    const bool can_write = producer->op == OpCode::LayerNorm || producer->op == OpCode::Attention ||
                           producer->op == OpCode::Linear;
    if (can_write && wanting == readers.size()) {
      make_i8(graph_.tensor(index), 1);
    } else {
      add_quantize_step(index, readers);
    }
  }

  void add_quantize_step(uint32_t index, const std::vector<Reader>& readers) {
    auto tensor = std::make_unique<schema::TensorT>();
    const schema::TensorT& source = graph_.tensor(index);
    tensor->name = source.name + ".i8";
    tensor->kind = schema::TensorKind::Activation;
    tensor->rows = source.rows;
    tensor->width = source.width;
    tensor->rows_symbol = source.rows_symbol;
    make_i8(*tensor, 1);
    const uint32_t added = static_cast<uint32_t>(graph_.model.tensors.size());
    graph_.model.tensors.push_back(std::move(tensor));

    auto& steps = graph_.entry().steps;
    for (auto& step : steps) {
      for (const Reader& reader : readers) {
        if (reader.step == step.get() && wants_i8(reader)) step->inputs[reader.input] = added;
      }
    }
    auto quantize_step = std::make_unique<schema::StepT>();
    quantize_step->op = OpCode::Quantize;
    quantize_step->inputs = {index};
    quantize_step->outputs = {added};
    const auto place = std::find_if(steps.begin(), steps.end(), [&](const auto& step) {
      return step.get() == producers_[index];
    });
    steps.insert(place + 1, std::move(quantize_step));
  }

  Graph& graph_;
  std::vector<std::vector<Reader>> readers_;
  /// Step that writes each tensor last.
  std::vector<const schema::StepT*> producers_;
};

}  // namespace

void quantize(Graph& graph, const QuantizeOptions& options) {
  if (options.activations && !options.weights) {
    throw std::logic_error("int8 activations need int8 weights");
  }
  Quantizer quantizer(graph);
  if (options.weights) quantizer.weights();
  if (options.activations) quantizer.activations();
}

}  // namespace oxbow::convert
