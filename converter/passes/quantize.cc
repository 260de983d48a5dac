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
#include <map>
#include <memory>
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
    for_each_step([&](schema::StepT& step) {
      if (step.op == OpCode::Linear) {
        make_i8(graph_.tensor(step.inputs[1]), 1, schema::Layout::Block8x4);
      } else if (step.op == OpCode::Embedding && !makes_angles(step)) {
        make_i8(graph_.tensor(step.inputs[1]), 1);
      }
    });
  }

  void activations() {
    states_and_tables();
    // Quantise steps are added to the list, so collect the tensors first.
    const uint32_t count = static_cast<uint32_t>(graph_.model.tensors.size());
    for (uint32_t i = 0; i < count; ++i) keys_and_values(i);
    for (uint32_t i = 0; i < count; ++i) matrix_input(i);
  }

 private:
  void index() {
    readers_.assign(graph_.model.tensors.size(), {});
    producers_.assign(graph_.model.tensors.size(), nullptr);
    for_each_step([&](schema::StepT& step) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        readers_[step.inputs[i]].push_back({&step, i});
      }
      for (const uint32_t output : step.outputs) producers_[output] = &step;
    });
  }

  template <typename Visit>
  void for_each_step(const Visit& visit) {
    for (const auto& entry : graph_.model.entry_points) {
      for (const auto& step : entry->steps) visit(*step);
    }
  }

  /// A table of sines and cosines: eight bits are too few for angles.
  bool makes_angles(const schema::StepT& step) const {
    const std::vector<Reader>& readers = readers_[step.outputs[0]];
    return std::any_of(readers.begin(), readers.end(), [](const Reader& reader) {
      return reader.step->op == OpCode::Rope && reader.input == 1;
    });
  }

  /// A table that is also a matrix (tied weights) needs both layouts: the embedding gets its own
  /// copy.
  void split_shared_tables() {
    for_each_step([&](schema::StepT& step) {
      if (step.op != OpCode::Embedding) return;
      const uint32_t table = step.inputs[1];
      const bool shared = std::any_of(readers_[table].begin(), readers_[table].end(),
                                      [](const Reader& r) { return r.step->op == OpCode::Linear; });
      if (!shared) return;
      auto copy = std::make_unique<schema::TensorT>();
      copy->name = graph_.tensor(table).name + ".embedding";
      copy->kind = schema::TensorKind::Weight;
      copy->rows = graph_.tensor(table).rows;
      copy->width = graph_.tensor(table).width;
      const uint32_t added = static_cast<uint32_t>(graph_.model.tensors.size());
      graph_.model.tensors.push_back(std::move(copy));
      graph_.weights[added] = graph_.weights.at(table);
      step.inputs[1] = added;
    });
    index();
  }

  void states_and_tables() {
    for (uint32_t i = 0; i < readers_.size(); ++i) {
      schema::TensorT& tensor = graph_.tensor(i);
      if (tensor.kind == schema::TensorKind::State) {
        uint32_t groups = 1;
        // The few rows a convolution looks back to are not worth an error.
        bool keep = tensor.type == DataType::I32;
        for (const Reader& reader : readers_[i]) {
          if (is_key_or_value(reader)) groups = reader.step->options.AsAttentionOptions()->kv_heads;
          keep = keep || reader.step->op == OpCode::Convolution;
        }
        if (!keep) make_i8(tensor, groups);
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
    const schema::TensorKind kind = graph_.tensor(index).kind;
    if (kind != schema::TensorKind::Activation && kind != schema::TensorKind::Input) return;
    const std::vector<Reader> readers = readers_[index];
    std::map<uint32_t, size_t> wanted;  // How many readers want how many scales.
    for (const Reader& reader : readers) {
      if (const uint32_t groups = key_groups(reader); groups != 0) ++wanted[groups];
    }
    if (wanted.empty()) return;
    // A push alone quantises by itself.
    const bool attended = std::any_of(readers.begin(), readers.end(), is_key_or_value);
    const schema::StepT* producer = producers_[index];
    const bool can_write =
        producer != nullptr && (producer->op == OpCode::Linear || producer->op == OpCode::Rope);
    if (can_write && wanted.size() == 1 && wanted.begin()->second == readers.size()) {
      make_i8(graph_.tensor(index), wanted.begin()->first);
    } else if (attended) {
      for (const auto& [groups, count] : wanted) {
        add_quantize_step(index, groups, readers, [&, groups = groups](const Reader& reader) {
          return key_groups(reader) == groups;
        });
      }
    }
  }

  /// Scales per row that a reader of keys or values wants; 0: it reads them as something else.
  uint32_t key_groups(const Reader& reader) const {
    if (is_key_or_value(reader)) return reader.step->options.AsAttentionOptions()->kv_heads;
    if (reader.step->op != OpCode::RingPush) return 0;
    const schema::TensorT& state = graph_.tensor(reader.step->outputs[reader.input]);
    return state.type == DataType::I8 ? state.scale_groups : 0;
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
    const bool can_write = producer != nullptr &&
                           (producer->op == OpCode::LayerNorm || producer->op == OpCode::RmsNorm ||
                            producer->op == OpCode::Attention || producer->op == OpCode::Linear ||
                            producer->op == OpCode::Multiply);
    if (can_write && wanting == readers.size()) {
      make_i8(graph_.tensor(index), 1);
    } else {
      add_quantize_step(index, 1, readers, [&](const Reader& reader) { return wants_i8(reader); });
    }
  }

  /// An int8 copy of a tensor for those of its readers that want it.
  template <typename Wants>
  void add_quantize_step(uint32_t index, uint32_t groups, const std::vector<Reader>& readers,
                         const Wants& wants) {
    auto tensor = std::make_unique<schema::TensorT>();
    const schema::TensorT& source = graph_.tensor(index);
    tensor->name = source.name + (groups == 1 ? ".i8" : ".i8x" + std::to_string(groups));
    tensor->kind = schema::TensorKind::Activation;
    tensor->rows = source.rows;
    tensor->width = source.width;
    tensor->rows_symbol = source.rows_symbol;
    make_i8(*tensor, groups);
    const uint32_t added = static_cast<uint32_t>(graph_.model.tensors.size());
    graph_.model.tensors.push_back(std::move(tensor));

    const schema::StepT* first_reader = nullptr;
    for_each_step([&](schema::StepT& step) {
      for (const Reader& reader : readers) {
        if (reader.step != &step || !wants(reader)) continue;
        step.inputs[reader.input] = added;
        if (first_reader == nullptr) first_reader = &step;
      }
    });
    auto quantize_step = std::make_unique<schema::StepT>();
    quantize_step->op = OpCode::Quantize;
    quantize_step->inputs = {index};
    quantize_step->outputs = {added};
    for (const auto& entry : graph_.model.entry_points) {
      auto& steps = entry->steps;
      const auto place = std::find_if(steps.begin(), steps.end(),
                                      [&](const auto& step) { return step.get() == first_reader; });
      if (place == steps.end()) continue;
      steps.insert(place, std::move(quantize_step));
      break;
    }
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
