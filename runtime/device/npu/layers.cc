// Which steps of a model a plug-in may run: what the file has for its target, sorted and looked over.

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>

#include "runtime/device/npu/device.h"
#include "runtime/model/model.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

uint32_t global_step(const Model& model, uint32_t entry, uint32_t step) {
  for (uint32_t e = 0; e < entry; ++e) step += model.entry(e).steps()->size();
  return step;
}

const schema::Offload& offload_at(const Model& model, size_t index) {
  return *model.graph->offloads()->Get(static_cast<uint32_t>(index));
}

size_t offload_count(const Model& model) {
  return model.graph->offloads() == nullptr ? 0 : model.graph->offloads()->size();
}

/// And of a kind that this library knows.
bool is_for(const schema::Offload& offload, const char* target) {
  return target != nullptr && offload.result() <= schema::OffloadResult::MAX &&
         std::string_view(offload.target()->c_str(), offload.target()->size()) == target;
}

/// The plug-in's first target that the file has.
const char* choose_target(const Model& model, const NpuHandle& handle) {
  for (size_t t = 0; t < handle.caps().target_count; ++t) {
    const char* target = handle.caps().targets[t];
    for (size_t i = 0; i < offload_count(model); ++i) {
      if (is_for(offload_at(model, i), target)) return target;
    }
  }
  return nullptr;
}

template <typename Items>
void count_each(const Items* items, uint32_t* counts) {
  for (uint32_t i = 0; items != nullptr && i < items->size(); ++i) ++counts[items->Get(i)];
}

/// How often each tensor is read, by steps and by the caller.
void count_readers(const Model& model, uint32_t* readers) {
  for (uint32_t e = 0; e < model.graph->entry_points()->size(); ++e) {
    const schema::EntryPoint& entry = model.entry(e);
    ++readers[entry.logits()];
    count_each(entry.kept(), readers);
    count_each(entry.outputs(), readers);
    for (const schema::Step* step : *entry.steps()) count_each(step->inputs(), readers);
  }
}

/// Each step but the last gives the next one's rows, and nobody else anything.
bool is_chain(const Model& model, const NpuLayer& layer, const uint32_t* readers) {
  const auto& steps = *model.entry(layer.entry).steps();
  for (uint32_t i = 0; i + 1 < layer.step_count; ++i) {
    const auto* outputs = steps[layer.entry_step + i]->outputs();
    const auto* inputs = steps[layer.entry_step + i + 1]->inputs();
    if (outputs == nullptr || inputs == nullptr || outputs->size() != 1 || inputs->size() == 0 ||
        outputs->Get(0) != inputs->Get(0) || readers[outputs->Get(0)] != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace

/// Sorts the file's offloads for the target by step, into one layer each.
Status NpuDevice::find_layers(Error* error) {
  const char* target = choose_target(model_, *handle_);
  if (target == nullptr) {
    const oxb_npu_caps& caps = handle_->caps();
    NpuWhy first;
    std::snprintf(
        first.text, sizeof(first.text), "%s",
        caps.target_count == 0 || caps.targets[0] == nullptr ? "nothing" : caps.targets[0]);
    return fail(error, Status::kNoDevice,
                "the file has no layers that plug-in '%.40s' runs, which is made for %.40s%s: "
                "convert it with --npu",
                handle_->name(), first.read(), caps.target_count > 1 ? " and others" : "");
  }
  const size_t count = offload_count(model_);
  auto* steps = new (std::nothrow) uint32_t[count];
  if (steps == nullptr) return fail(error, Status::kOutOfMemory, "no memory for the layers");
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    const schema::Offload& offload = offload_at(model_, i);
    if (!is_for(offload, target)) continue;
    steps[used++] = global_step(model_, offload.entry(), offload.step());
  }
  std::sort(steps, steps + used);
  layer_count_ = static_cast<size_t>(std::unique(steps, steps + used) - steps);
  layers_ = new (std::nothrow) NpuLayer[layer_count_];
  for (size_t i = 0; layers_ != nullptr && i < layer_count_; ++i) layers_[i].index = steps[i];
  delete[] steps;
  if (layers_ == nullptr) {
    layer_count_ = 0;
    return fail(error, Status::kOutOfMemory, "no memory for the layers");
  }
  for (size_t i = 0; i < count; ++i) {
    const schema::Offload& offload = offload_at(model_, i);
    if (!is_for(offload, target)) continue;
    const uint32_t index = global_step(model_, offload.entry(), offload.step());
    add_offload(
        *std::lower_bound(layers_, layers_ + layer_count_, index,
                          [](const NpuLayer& layer, uint32_t step) { return layer.index < step; }),
        i);
  }
  return take_steps(error);
}

/// Buckets stay sorted by rows. What is too much, there twice, or unlike the first is left out.
void NpuDevice::add_offload(NpuLayer& layer, size_t number) {
  const schema::Offload& offload = offload_at(model_, number);
  const uint32_t count = layer.spec.bucket_count;
  if (count == NpuLayer::kMaxBuckets) return;
  uint32_t at = count;
  while (at > 0 && layer.buckets[at - 1].rows > offload.rows()) --at;
  const auto result = static_cast<oxb_npu_result>(offload.result());
  if ((at > 0 && layer.buckets[at - 1].rows == offload.rows()) ||
      (count > 0 && (layer.spec.result != result || layer.step_count != offload.steps()))) {
    return;
  }
  std::copy_backward(layer.buckets + at, layer.buckets + count, layer.buckets + count + 1);
  std::copy_backward(layer.hashes + at, layer.hashes + count, layer.hashes + count + 1);
  oxb_npu_bucket& bucket = layer.buckets[at];
  bucket = {};
  bucket.rows = offload.rows();
  bucket.commands = model_.data + offload.commands();
  bucket.command_bytes = static_cast<size_t>(offload.command_bytes());
  bucket.weights = model_.data + offload.weights();
  bucket.weight_bytes = static_cast<size_t>(offload.weight_bytes());
  layer.hashes[at] = offload.hash();
  layer.entry = offload.entry();
  layer.entry_step = offload.step();
  layer.step_count = offload.steps();
  layer.spec.size = sizeof(layer.spec);
  layer.spec.target = offload.target()->c_str();
  layer.spec.compiler = offload.compiler() == nullptr ? nullptr : offload.compiler()->c_str();
  layer.spec.result = result;
  layer.spec.bucket_count = count + 1;
  layer.spec.buckets = layer.buckets;
}

/// Each step is one layer's, the first that has it. Layers without steps go.
Status NpuDevice::take_steps(Error* error) {
  auto* readers = new (std::nothrow) uint32_t[model_.graph->tensors()->size()]();
  if (readers == nullptr) return fail(error, Status::kOutOfMemory, "no memory for the layers");
  count_readers(model_, readers);
  uint32_t end = 0;
  for (size_t i = 0; i < layer_count_; ++i) {
    NpuLayer& layer = layers_[i];
    if (layer.index < end || !is_chain(model_, layer, readers)) layer.step_count = 0;
    if (layer.step_count == 0) {
      model_.log(Log::kWarning,
                 "step %u stays on the CPU: what the file has for an NPU is no chain", layer.index);
      continue;
    }
    end = layer.index + layer.step_count;
    step_count_ += layer.step_count;
  }
  delete[] readers;
  const NpuLayer* last = std::remove_if(
      layers_, layers_ + layer_count_, [](const NpuLayer& layer) { return layer.step_count == 0; });
  layer_count_ = static_cast<size_t>(last - layers_);
  steps_ = new (std::nothrow) NpuBound[step_count_];
  if (steps_ == nullptr) {
    step_count_ = 0;
    return fail(error, Status::kOutOfMemory, "no memory for the layers");
  }
  NpuBound* next = steps_;
  for (size_t i = 0; i < layer_count_; ++i) {
    layers_[i].spec.buckets = layers_[i].buckets;
    layers_[i].steps = next;
    next += layers_[i].step_count;
  }
  return Status::kOk;
}

/// The layer that a step is in, or null.
NpuLayer* NpuDevice::find(uint32_t index) {
  NpuLayer* at =
      std::upper_bound(layers_, layers_ + layer_count_, index,
                       [](uint32_t step, const NpuLayer& layer) { return step < layer.index; });
  if (at == layers_) return nullptr;
  --at;
  return index - at->index < at->step_count ? at : nullptr;
}

/// Null: its steps can give what it is for.
const char* NpuDevice::why_unfit(const NpuLayer& layer) const {
  for (uint32_t i = 0; i < layer.step_count; ++i) {
    const NpuBound& bound = layer.steps[i];
    if (!bound.is_served) return "it is not for dense int8 steps";
    if (layer.has_codes() && !bound.step.has_codes) return "a step has no scale for int8 results";
    if (i + 1 < layer.step_count && (!layer.has_codes() || !bound.step.may_lead)) {
      return "its steps are no chain of int8 codes";
    }
  }
  return nullptr;
}

}  // namespace oxbow
