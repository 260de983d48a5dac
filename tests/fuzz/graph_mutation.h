#pragma once

// Changed copies of good model files: numbers and lists in place, steps and tensors added or moved, redundant sizes made
// right again or not, checksums always.

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/graph_slots.h"

namespace oxbow::testing {

using GraphBytes = std::vector<uint8_t>;

/// Bytes at an address that a model file may have in memory, and none behind them.
class FileBytes {
 public:
  explicit FileBytes(size_t size)
      : data_(static_cast<uint8_t*>(std::aligned_alloc(64, (size + 63) / 64 * 64))), size_(size) {}
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  std::unique_ptr<uint8_t[], Free> data_;
  size_t size_;
};

/// A good model: its graph as a FlatBuffer with every field written out, and its weights, which stay where they are in
/// the file's bytes while graphs change before them.
struct BaseGraph {
  std::string name;
  schema::ModelT model;
  GraphBytes graph;
  std::optional<GraphSlots> slots;

  BaseGraph(std::string base_name, std::span<const uint8_t> file) : name(std::move(base_name)) {
    FilePrefix prefix;
    std::memcpy(&prefix, file.data(), sizeof(prefix));
    schema::GetModel(file.data())->UnPackTo(&model);
    model.tokenizer.reset();  // Has targets of its own.
    graph = pack(model);
    slots.emplace(graph);
    const auto data = file.subspan(prefix.data_offset, prefix.data_bytes);
    weights_.assign(data.begin(), data.end());
    weights_hash_ = hash_bytes(weights_.data(), weights_.size());
  }

  static GraphBytes pack(const schema::ModelT& model) {
    flatbuffers::FlatBufferBuilder builder;
    builder.ForceDefaults(true);
    schema::FinishModelBuffer(builder, schema::CreateModel(builder, &model));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
  }

  /// A file of this graph and the weights, with right checksums; good until the next.
  std::span<const uint8_t> frame(std::span<const uint8_t> changed) {
    constexpr size_t kMoved = sizeof(FilePrefix) - 8;
    FilePrefix prefix = {};
    std::memcpy(&prefix, changed.data(), 8);
    prefix.root_offset += kMoved;
    prefix.version = kFormatVersion;
    prefix.prefix_bytes = sizeof(prefix);
    prefix.graph_bytes = changed.size() + kMoved;
    make_room(prefix.graph_bytes);
    prefix.data_offset = weights_at_;
    prefix.data_bytes = weights_.size();
    uint8_t* file = file_->data();
    std::memcpy(file + sizeof(prefix), changed.data() + 8, changed.size() - 8);
    prefix.graph_hash = hash_bytes(file + sizeof(prefix), prefix.graph_bytes - sizeof(prefix));
    prefix.data_hash = weights_hash_;
    prefix.prefix_hash = hash_bytes(&prefix, offsetof(FilePrefix, prefix_hash));
    std::memcpy(file, &prefix, sizeof(prefix));
    return {file, file_->size()};
  }

 private:
  /// What lies between graph and weights may be anything.
  void make_room(size_t graph_bytes) {
    if (file_ && graph_bytes <= weights_at_) return;
    weights_at_ = round_up(graph_bytes + graph_bytes / 4, kSegmentAlignment);
    file_.emplace(weights_at_ + weights_.size());
    std::memset(file_->data(), 0, weights_at_);
    if (!weights_.empty()) {
      std::memcpy(file_->data() + weights_at_, weights_.data(), weights_.size());
    }
  }

  GraphBytes weights_;
  uint64_t weights_hash_ = 0;
  std::optional<FileBytes> file_;
  size_t weights_at_ = 0;
};

class GraphMutation {
 public:
  GraphMutation(Choices& choices, BaseGraph& base) : choices_(choices), base_(base) {}

  std::span<const uint8_t> make() {
    GraphBytes graph = base_.graph;
    const GraphSlots* slots = &*base_.slots;
    std::optional<GraphSlots> own;
    if (choices_.one_in(3)) {
      schema::ModelT model = base_.model;
      for (size_t edits = 1 + choices_.below(2); edits > 0; --edits) rebuild(model);
      graph = BaseGraph::pack(model);
      own.emplace(graph);
      slots = &*own;
    }
    const size_t most = choices_.one_in(4) ? 6 : 2;
    for (size_t patches = choices_.below(most + 1); patches > 0; --patches) patch(graph, *slots);
    if (choices_.below(4) != 0) repair(graph, choices_.one_in(2));
    return base_.frame(graph);
  }

 private:
  // ---- Numbers and lists in place

  void patch(GraphBytes& graph, const GraphSlots& slots) {
    if (choices_.one_in(8) && !slots.lists().empty()) return patch_list(graph, slots);
    const size_t index = choices_.below(slots.slots().size());
    const Slot& slot = slots.slots()[index];
    uint64_t value = 0;
    std::memcpy(&value, graph.data() + slot.at, slot.bytes);
    if (choices_.below(3) == 0) {  // What the same field has elsewhere.
      const auto& kin = slots.kin(index);
      std::memcpy(&value, graph.data() + slots.slots()[kin[choices_.below(kin.size())]].at,
                  slot.bytes);
    } else if (slot.is_float) {
      constexpr std::array<float, 12> kNumbers = {0.0f,   -0.0f, 1.0f,   -1.0f, 1e-38f,   1e38f,
                                                  1e-45f, 0.5f,  100.0f, -1e9f, INFINITY, NAN};
      value = std::bit_cast<uint32_t>(kNumbers[choices_.below(kNumbers.size())]);
    } else {
      value = other_integer(value);
    }
    std::memcpy(graph.data() + slot.at, &value, slot.bytes);
  }

  uint64_t other_integer(uint64_t value) {
    constexpr std::array<uint64_t, 14> kExtremes = {0x7f,       0x80,
                                                    0xff,       0x7fff,
                                                    0xffff,     0x10000,
                                                    0x1000000,  0x7fffffff,
                                                    0x80000000, 0xffffffff,
                                                    INT64_MAX,  uint64_t{1} << 63,
                                                    UINT64_MAX, uint64_t{1} << 46};
    switch (choices_.below(7)) {
      case 0:
        return value + 1;
      case 1:
        return value - 1;
      case 2:
        return value * 2;
      case 3:
        return value / 2;
      case 4:
        return choices_.below(16);
      case 5:
        return value ^ uint64_t { 1 } << choices_.below(32);
      default:
        return kExtremes[choices_.below(kExtremes.size())];
    }
  }

  void patch_list(GraphBytes& graph, const GraphSlots& slots) {
    const List& list = slots.lists()[choices_.below(slots.lists().size())];
    if (list.length == 0) return;
    const auto element = [&](size_t i) { return list.length_at + 4 + 4 * i; };
    const auto get = [&](size_t at) {
      uint32_t value = 0;
      std::memcpy(&value, graph.data() + at, 4);
      return value;
    };
    const auto set = [&](size_t at, uint32_t value) { std::memcpy(graph.data() + at, &value, 4); };
    const size_t a = element(choices_.below(list.length)), b = element(choices_.below(list.length));
    // An offset counts from its own place.
    const auto moved = [&](size_t from, size_t to) {
      return list.of_tables ? static_cast<uint32_t>(get(from) + from - to) : get(from);
    };
    const uint32_t at_a = moved(b, a), at_b = moved(a, b);
    switch (choices_.below(4)) {
      case 0:
        set(list.length_at, static_cast<uint32_t>(choices_.below(list.length)));
        break;
      case 1:
        set(list.length_at, list.length + static_cast<uint32_t>(choices_.below(3)));
        break;
      case 2:
        set(b, at_b);
        break;
      default:
        set(a, at_a);
        set(b, at_b);
    }
  }

  // ---- Sizes that follow from others

  static void set(const flatbuffers::Table* table, flatbuffers::voffset_t field, uint64_t value,
                  size_t bytes) {
    auto* at = const_cast<uint8_t*>(table->GetAddressOf(field));
    if (at != nullptr) std::memcpy(at, &value, bytes);
  }
  template <typename T>
  static const flatbuffers::Table* raw(const T& table) {
    return reinterpret_cast<const flatbuffers::Table*>(&table);
  }

  /// Makes rows and bytes fit what they follow from; with `places` all tensors get memory of their own.
  void repair(GraphBytes& graph, bool places) {
    flatbuffers::Verifier verifier(graph.data(), graph.size());
    if (!schema::VerifyModelBuffer(verifier)) return;
    const schema::Model& model = *schema::GetModel(graph.data());
    if (model.tensors() == nullptr || model.plan() == nullptr) return;
    const uint32_t symbols = model.symbols() == nullptr ? 0 : model.symbols()->size();
    const uint32_t rings = model.rings() == nullptr ? 0 : model.rings()->size();
    for (const schema::Tensor* tensor : *model.tensors()) {
      using schema::Tensor;
      if (static_cast<uint32_t>(tensor->rows_symbol()) < symbols) {
        set(raw(*tensor), Tensor::VT_ROWS,
            model.symbols()->Get(static_cast<uint32_t>(tensor->rows_symbol()))->max(), 4);
      } else if (static_cast<uint32_t>(tensor->ring()) < rings) {
        set(raw(*tensor), Tensor::VT_ROWS,
            model.rings()->Get(static_cast<uint32_t>(tensor->ring()))->capacity(), 4);
      }
      uint64_t bytes = 0;
      if (tensor_bytes(static_cast<DataType>(tensor->type()), static_cast<Layout>(tensor->layout()),
                       tensor->rows(), tensor->width(), tensor->scale_groups(), &bytes)) {
        set(raw(*tensor), Tensor::VT_BYTES, bytes, 8);
      }
    }
    if (!places) return;
    // Shared states first.
    std::array<uint64_t, 2> state_bytes = {};
    uint64_t activation_bytes = 0;
    for (const size_t pass : {size_t{0}, size_t{1}}) {
      for (const schema::Tensor* tensor : *model.tensors()) {
        const bool state = tensor->kind() == schema::TensorKind::State;
        const bool shared = state && static_cast<uint32_t>(tensor->ring()) < rings &&
                            model.rings()->Get(static_cast<uint32_t>(tensor->ring()))->shared();
        if (tensor->kind() == schema::TensorKind::Weight) continue;
        if (pass != (state && !shared ? 1u : 0u)) continue;
        uint64_t& end = state ? state_bytes[pass] : activation_bytes;
        const uint64_t at = end + (state && pass == 1 ? state_bytes[0] : 0);
        set(raw(*tensor), schema::Tensor::VT_OFFSET, at, 8);
        end += (tensor->bytes() + 63) / 64 * 64;
      }
    }
    using schema::MemoryPlan;
    set(raw(*model.plan()), MemoryPlan::VT_ACTIVATIONS, activation_bytes, 8);
    set(raw(*model.plan()), MemoryPlan::VT_SHARED_STATES, state_bytes[0], 8);
    set(raw(*model.plan()), MemoryPlan::VT_STATES, state_bytes[0] + state_bytes[1], 8);
  }

  // ---- Steps, tensors and entry points

  uint32_t any_tensor(const schema::ModelT& model) {
    return static_cast<uint32_t>(choices_.below(model.tensors.size()));
  }

  /// One that has the shape of `like`, if one is found soon.
  uint32_t similar_tensor(const schema::ModelT& model, uint32_t like) {
    for (int tries = 0; tries < 16; ++tries) {
      const uint32_t other = any_tensor(model);
      const schema::TensorT &a = *model.tensors[other], &b = *model.tensors[like];
      if (a.width == b.width && a.type == b.type && a.kind == b.kind) return other;
    }
    return any_tensor(model);
  }

  uint32_t copy_tensor(schema::ModelT& model, uint32_t index) {
    auto copy = std::make_unique<schema::TensorT>(*model.tensors[index]);
    copy->name += "+" + std::to_string(model.tensors.size());
    if (copy->kind == schema::TensorKind::Activation) {
      copy->offset = model.plan->activations;
      model.plan->activations += (copy->bytes + 63) / 64 * 64;
    } else if (copy->kind == schema::TensorKind::State) {
      copy->offset = model.plan->states;
      model.plan->states += (copy->bytes + 63) / 64 * 64;
    }
    model.tensors.push_back(std::move(copy));
    return static_cast<uint32_t>(model.tensors.size() - 1);
  }

  void replace_later(schema::EntryPointT& entry, size_t from, uint32_t before, uint32_t after) {
    for (size_t i = from; i < entry.steps.size(); ++i) {
      for (uint32_t& input : entry.steps[i]->inputs) {
        if (input == before) input = after;
      }
    }
  }

  void rebuild(schema::ModelT& model) {
    schema::EntryPointT& entry = *model.entry_points[choices_.below(model.entry_points.size())];
    if (entry.steps.empty()) return;
    const size_t at = choices_.below(entry.steps.size());
    schema::StepT& step = *entry.steps[at];
    const auto begin = entry.steps.begin();
    const auto place = [&](size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
    switch (choices_.below(10)) {
      case 0:  // The same step once more, with results of its own that later steps use or not.
      case 1: {
        auto copy = std::make_unique<schema::StepT>(step);
        const bool used = choices_.one_in(2);
        const size_t where = at + 1 + choices_.below(entry.steps.size() - at);
        for (uint32_t& output : copy->outputs) {
          const uint32_t before = output;
          if (model.tensors[output]->kind != schema::TensorKind::State) {
            output = copy_tensor(model, output);
            model.tensors[output]->kind = schema::TensorKind::Activation;
          }
          if (used) replace_later(entry, where, before, output);
        }
        if (!copy->inputs.empty() && choices_.one_in(2)) {
          uint32_t& input = copy->inputs[choices_.below(copy->inputs.size())];
          input = similar_tensor(model, input);
        }
        entry.steps.insert(place(where), std::move(copy));
        break;
      }
      case 2:
        entry.steps.erase(place(at));
        break;
      case 3:
        std::swap(entry.steps[at], entry.steps[choices_.below(entry.steps.size())]);
        break;
      case 4:
        if (!step.inputs.empty()) {
          uint32_t& input = step.inputs[choices_.below(step.inputs.size())];
          input = similar_tensor(model, input);
        }
        break;
      case 5:
        if (!step.outputs.empty()) {
          uint32_t& output = step.outputs[choices_.below(step.outputs.size())];
          output = choices_.one_in(2) ? similar_tensor(model, output) : copy_tensor(model, output);
        }
        break;
      case 6: {  // A memory apart from its partners: a ring or a symbol of its own.
        schema::TensorT& tensor = *model.tensors[any_tensor(model)];
        if (tensor.ring >= 0) {
          model.rings.push_back(
              std::make_unique<schema::RingT>(*model.rings[static_cast<size_t>(tensor.ring)]));
          tensor.ring = static_cast<int32_t>(model.rings.size() - 1);
        } else if (tensor.rows_symbol >= 0) {
          model.symbols.push_back(std::make_unique<schema::SymbolT>(
              *model.symbols[static_cast<size_t>(tensor.rows_symbol)]));
          tensor.rows_symbol = static_cast<int32_t>(model.symbols.size() - 1);
        }
        break;
      }
      case 7: {  // Another result, or one less.
        auto& list = choices_.one_in(2) ? entry.outputs : entry.kept;
        if (!list.empty() && choices_.one_in(3)) {
          list.pop_back();
        } else {
          list.push_back(any_tensor(model));
        }
        break;
      }
      case 8: {  // A second way through the same memories.
        auto copy = std::make_unique<schema::EntryPointT>(entry);
        copy->name += "+";
        copy->starts = choices_.one_in(2);
        if (choices_.one_in(2) && !copy->steps.empty()) {
          copy->steps.erase(copy->steps.begin() +
                            static_cast<std::ptrdiff_t>(choices_.below(copy->steps.size())));
        }
        model.entry_points.insert(model.entry_points.begin(), std::move(copy));
        break;
      }
      default: {  // The options of another step.
        const schema::StepT& other = *entry.steps[choices_.below(entry.steps.size())];
        if (choices_.one_in(2)) step.op = other.op;
        step.options = other.options;
      }
    }
  }

  Choices& choices_;
  BaseGraph& base_;
};

}  // namespace oxbow::testing
