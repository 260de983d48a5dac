// Decides the type of every tensor, by what the ops' signatures allow and their traits ask for.
//
//   weights        as their format (weight_formats.h) says; what is ternary by nature stays so. int8: matrices in blocks, one scale per output channel;
//                  tables that rows are looked up in: int8 rows, one scale per row
//                  norms, biases and everything small, tables with few rows beside the largest too: float
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
#include "host/args.h"
#include "ops/traits.h"
#include "runtime/model/state_kinds.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::OpCode;

/// A step that reads a tensor, and as which of its inputs.
struct Reader {
  const schema::StepT* step;
  size_t input;
};

void make_i8(schema::TensorT& tensor, uint32_t scale_groups) {
  tensor.type = DataType::I8;
  tensor.scale_groups = scale_groups;
}

/// A table of so many times less rows than the largest stays float.
constexpr uint32_t kSmallTable = 16;

/// What an input is wanted as int8 for.
enum class Want { kBesideMemories, kMatrix };

class Quantizer {
 public:
  Quantizer(Graph& graph, const QuantizeOptions& options) : graph_(graph), options_(options) {
    index();
  }

  void weights() {
    split_shared_tables();
    for_each_step([&](schema::StepT& step) {
      const auto weight = weight_input(op_traits(step.op));
      const Storage* storage = weight ? storage_of(step, *weight) : nullptr;
      if (storage == nullptr || feeds_exact_input(step)) return;
      const uint32_t tensor = step.inputs[weight->input];
      if (all_readers_take(tensor, *storage)) store_as(*storage, graph_.tensor(tensor));
    });
  }

  void activations() {
    if (options_.activations) states();
    // Quantise steps are added to the list, so collect the tensors first.
    const uint32_t count = static_cast<uint32_t>(graph_.model.tensors.size());
    if (options_.activations) {
      for (uint32_t i = 0; i < count; ++i) rows(i, Want::kBesideMemories);
    }
    for (uint32_t i = 0; i < count; ++i) rows(i, Want::kMatrix);
  }

  /// A table that is also a matrix (tied weights) needs both layouts: who looks up rows gets a copy.
  void split_shared_tables() {
    const auto is_in_blocks = [&](const schema::StepT& step, const WeightInput& weight) {
      const Storage* storage = storage_of(step, weight);
      return storage != nullptr && storage->layout != Layout::kRowMajor;
    };
    const auto wants_blocks = [&](const schema::StepT& step, uint32_t tensor) {
      const auto weight = weight_input(op_traits(step.op));
      return weight && is_in_blocks(step, *weight) && step.inputs[weight->input] == tensor;
    };
    for_each_step([&](schema::StepT& step) {
      const auto weight = weight_input(op_traits(step.op));
      if (!weight || is_in_blocks(step, *weight)) return;
      const uint32_t table = step.inputs[weight->input];
      const bool shared =
          std::any_of(readers_[table].begin(), readers_[table].end(),
                      [&](const Reader& reader) { return wants_blocks(*reader.step, table); });
      if (!shared) return;
      auto copy = std::make_unique<schema::TensorT>();
      copy->name = graph_.tensor(table).name + "." + in_lower_case(schema::EnumNameOpCode(step.op));
      copy->kind = schema::TensorKind::Weight;
      copy->rows = graph_.tensor(table).rows;
      copy->width = graph_.tensor(table).width;
      const uint32_t added = static_cast<uint32_t>(graph_.model.tensors.size());
      graph_.model.tensors.push_back(std::move(copy));
      graph_.weights[added] = graph_.weights.at(table);
      step.inputs[weight->input] = added;
    });
    index();
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
    for (uint32_t i = 0; i < readers_.size(); ++i) {
      largest_table_ = std::max(largest_table_, rows_of_table(i));
    }
  }

  /// Whether who looks up rows of a tensor finds them in a matrix's blocks.
  bool is_looked_up_in_blocks(uint32_t tensor) const {
    const auto multiplies = [&](const Reader& reader) {
      return op_traits(reader.step->op).turn_back == nullptr;
    };
    const std::vector<Reader>& readers = readers_[tensor];
    if (std::any_of(readers.begin(), readers.end(), multiplies)) return options_.tie_tables;
    // Four bits lose more in a table than they save, unless somebody wants them.
    return std::any_of(options_.keep.begin(), options_.keep.end(), [&](const KeptWeights& kept) {
      return weight_format(kept.format).in_groups() &&
             matches_pattern(kept.pattern, graph_.tensor(tensor).name);
    });
  }

  /// How a weight is stored for a reader; null: as float.
  const Storage* storage_of(const schema::StepT& step, const WeightInput& weight) const {
    const uint32_t tensor = step.inputs[weight.input];
    if (!graph_.weights.contains(tensor)) return nullptr;
    const auto format = [&]() -> std::string {
      if (graph_.ternary.contains(tensor)) return "ternary";
      for (const KeptWeights& kept : options_.keep) {
        if (matches_pattern(kept.pattern, graph_.tensor(tensor).name)) return kept.format;
      }
      if (graph_.precise.contains(graph_.tensor(tensor).name) &&
          !weight_format(options_.weights).is_float()) {
        return "f32";
      }
      if (is_small_table(tensor) && !weight_format(options_.weights).is_float()) return "f32";
      const auto found = options_.groups.find(graph_.tensor(tensor).name);
      if (found != options_.groups.end()) return found->second.has_min ? "int4min" : "int4";
      // A model that was trained with weights of three values has them where it can have them.
      return options_.weights == "ternary" && !graph_.ternary.empty() ? "int8" : options_.weights;
    };
    TypeSet types = weight.types;
    // A copy that is just being made is not known yet.
    if (op_traits(step.op).turn_back != nullptr &&
        (tensor >= readers_.size() || !is_looked_up_in_blocks(tensor))) {
      types = static_cast<TypeSet>(types & ~(kI8Blocks | kI4 | kI4Min));
    }
    return choose_storage(weight_format(format()), types);
  }

  /// One of types, or of positions: its rows are parts of nearly every token, and cost next to nothing as floats.
  bool is_small_table(uint32_t tensor) const {
    return rows_of_table(tensor) != 0 && rows_of_table(tensor) <= largest_table_ / kSmallTable;
  }

  /// Of a weight whose rows are looked up and do nothing else; 0: it is none.
  uint32_t rows_of_table(uint32_t tensor) const {
    // A copy that is just being made is not known yet.
    const bool is_table =
        graph_.weights.contains(tensor) && tensor < readers_.size() && !readers_[tensor].empty() &&
        std::all_of(readers_[tensor].begin(), readers_[tensor].end(), [](const Reader& reader) {
          const OpTraits& traits = op_traits(reader.step->op);
          return traits.category == OpCategory::kEmbedding && weight_input(traits).has_value();
        });
    return is_table ? graph_.tensor(tensor).rows : 0;
  }

  bool all_readers_take(uint32_t tensor, const Storage& storage) const {
    return std::all_of(readers_[tensor].begin(), readers_[tensor].end(), [&](const Reader& reader) {
      const auto weight = weight_input(op_traits(reader.step->op));
      return weight && weight->input == reader.input && (weight->types & storage.bit) != 0;
    });
  }

  template <typename Visit>
  void for_each_step(const Visit& visit) {
    for (const auto& entry : graph_.model.entry_points) {
      for (const auto& step : entry->steps) visit(*step);
    }
  }

  /// Whether a reader cannot do with eight bits of what the step looks up: sines and cosines.
  bool feeds_exact_input(const schema::StepT& step) const {
    const std::vector<Reader>& readers = readers_[step.outputs[0]];
    return std::any_of(readers.begin(), readers.end(), [](const Reader& reader) {
      return op_traits(reader.step->op).exact_input == static_cast<int>(reader.input);
    });
  }

  /// Memories: all steps that touch one must be content with int8.
  void states() {
    std::vector<bool> keep(graph_.model.tensors.size());
    for_each_step([&](const schema::StepT& step) {
      if (op_traits(step.op).i8_states) return;
      for (const uint32_t input : step.inputs) keep[input] = true;
      for (const uint32_t output : step.outputs) keep[output] = true;
    });
    for (uint32_t i = 0; i < keep.size(); ++i) {
      schema::TensorT& tensor = graph_.tensor(i);
      const bool is_memory =
          tensor.kind == schema::TensorKind::State && state_kind(tensor).keeps_rows;
      if (!is_memory || tensor.type != DataType::F32 || keep[i]) {
        continue;
      }
      uint32_t groups = 1;
      for (const Reader& reader : readers_[i]) {
        if (const uint32_t wanted = scales(reader, Want::kBesideMemories); wanted != 0) {
          groups = wanted;
        }
      }
      make_i8(tensor, groups);
    }
  }

  /// How many scales a row a reader wants; 0: it does not want int8 for this.
  uint32_t scales(const Reader& reader, Want want) const {
    const schema::StepT& step = *reader.step;
    const OpTraits& traits = op_traits(step.op);
    if (want == Want::kBesideMemories) {
      return traits.remembered_scales == nullptr
                 ? 0
                 : traits.remembered_scales(graph_.model, step, reader.input);
    }
    const auto weight = weight_input(traits);
    if (traits.multiplied_input != static_cast<int>(reader.input) || !weight) return 0;
    const DataType type = graph_.tensor(step.inputs[weight->input]).type;
    return needs_i8_rows(type) || (options_.activations && type == DataType::I8) ? 1 : 0;
  }

  /// Rows of this run, and tables, as their readers want them.
  void rows(uint32_t index, Want want) {
    schema::TensorT& tensor = graph_.tensor(index);
    if (tensor.type != DataType::F32) return;
    const std::vector<Reader> readers = readers_[index];
    if (tensor.kind == schema::TensorKind::State) {
      if (want != Want::kMatrix) return;
      // It may change between two readers.
      for (const Reader& one : readers) {
        if (scales(one, want) == 0) continue;
        add_quantize_step(index, 1, {one}, [](const Reader&) { return true; });
      }
      return;
    }
    std::map<uint32_t, size_t> wanted;  // How many readers want how many scales.
    bool needed = false;
    for (const Reader& reader : readers) {
      const uint32_t groups = scales(reader, want);
      if (groups == 0) continue;
      ++wanted[groups];
      needed = needed || !op_traits(reader.step->op).quantizes_rows;
    }
    if (wanted.empty()) return;
    const schema::StepT* producer = producers_[index];
    const bool can_be = tensor.kind == schema::TensorKind::Weight ||
                        (producer != nullptr && may_write_i8(op_traits(producer->op)));
    if (can_be && wanted.size() == 1 && wanted.begin()->second == readers.size()) {
      make_i8(tensor, wanted.begin()->first);
    } else if (needed) {
      for (const auto& [groups, count] : wanted) {
        add_quantize_step(index, groups, readers, [&, groups = groups](const Reader& reader) {
          return scales(reader, want) == groups;
        });
      }
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
  const QuantizeOptions& options_;
  uint32_t largest_table_ = 0;
  std::vector<std::vector<Reader>> readers_;
  /// Step that writes each tensor last.
  std::vector<const schema::StepT*> producers_;
};

}  // namespace

void split_shared_tables(Graph& graph, const QuantizeOptions& options) {
  Quantizer(graph, options).split_shared_tables();
}

void quantize(Graph& graph, const QuantizeOptions& options) {
  const WeightFormat& format = weight_format(options.weights);
  if (options.activations && format.is_float()) {
    throw std::logic_error("int8 activations need weights that are not float");
  }
  Quantizer quantizer(graph, options);
  quantizer.weights();
  quantizer.activations();
}

}  // namespace oxbow::convert
