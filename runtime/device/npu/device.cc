#include "runtime/device/npu/device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

// Below it reading weights is all that a layer costs, and a device reads them no faster.
constexpr uint32_t kLeastRows = 8;
constexpr size_t kMemoryAlignment = 4096;

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

/// Bytes of some rows of a layer's output, scales included, as compare copies them.
size_t output_bytes(const Tensor& y, size_t rows) {
  const size_t scales = y.type == DataType::kI8 ? y.scale_groups * sizeof(float) : 0;
  return rows * (y.stride() + scales);
}

}  // namespace

NpuDevice::NpuDevice(const Model& model, const DeviceOptions& options)
    : model_(model),
      handle_(options.npu),
      least_rows_(options.npu_least_rows == 0 ? kLeastRows : options.npu_least_rows),
      shadow_(options.npu_shadow) {
  handle_->keep();
}

NpuDevice::~NpuDevice() {
  for (size_t i = 0; i < layer_count_; ++i) {
    if (layers_[i].program != nullptr) handle_->unload(layers_[i].program);
  }
  std::free(memory_);
  delete[] layers_;
  handle_->release();
}

Status NpuDevice::open(const Model& model, const DeviceOptions& options, NpuDevice** device,
                       Error* error) {
  if (options.npu == nullptr) {
    return fail(error, Status::kInvalidArgument,
                "the backend npu needs a plug-in: give the session options an oxb_npu");
  }
  auto* made = new (std::nothrow) NpuDevice(model, options);
  if (made == nullptr) return fail(error, Status::kOutOfMemory, "no memory for a device");
  const Status status = made->find_layers(error);
  if (status != Status::kOk) {
    delete made;
    return status;
  }
  *device = made;
  return Status::kOk;
}

/// Sorts the file's offloads for the target by step, into one layer each.
Status NpuDevice::find_layers(Error* error) {
  const char* target = choose_target(model_, *handle_);
  if (target == nullptr) {
    const char* first = handle_->caps().target_count == 0 ? "nothing" : handle_->caps().targets[0];
    return fail(error, Status::kNoDevice,
                "the file has no layers that plug-in '%.40s' runs, which is made for %.40s%s: "
                "convert it with --npu",
                handle_->name(), first, handle_->caps().target_count > 1 ? " and others" : "");
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
    add_offload(global_step(model_, offload.entry(), offload.step()), i);
  }
  return Status::kOk;
}

/// Buckets stay sorted by rows. What is too much, or there twice, is left out.
void NpuDevice::add_offload(uint32_t index, size_t number) {
  NpuLayer& layer = *find(index);
  const schema::Offload& offload = offload_at(model_, number);
  const uint32_t count = layer.spec.bucket_count;
  if (count == NpuLayer::kMaxBuckets) return;
  uint32_t at = count;
  while (at > 0 && layer.buckets[at - 1].rows > offload.rows()) --at;
  const auto result = static_cast<oxb_npu_result>(offload.result());
  if ((at > 0 && layer.buckets[at - 1].rows == offload.rows()) ||
      (count > 0 && layer.spec.result != result)) {
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
  layer.spec.size = sizeof(layer.spec);
  layer.spec.target = offload.target()->c_str();
  layer.spec.compiler = offload.compiler() == nullptr ? nullptr : offload.compiler()->c_str();
  layer.spec.result = result;
  layer.spec.bucket_count = count + 1;
  layer.spec.buckets = layer.buckets;
}

NpuLayer* NpuDevice::find(uint32_t index) {
  NpuLayer* end = layers_ + layer_count_;
  NpuLayer* found = std::lower_bound(
      layers_, end, index, [](const NpuLayer& layer, uint32_t step) { return layer.index < step; });
  return found != end && found->index == index ? found : nullptr;
}

Status NpuDevice::bind(const DeviceStep& step, bool* claimed) {
  *claimed = false;
  NpuLayer* layer = find(next_step_++);
  const DeviceBind bind_step = step.op.bind_device[static_cast<size_t>(DeviceKind::kNpu)];
  if (layer == nullptr || bind_step == nullptr) return Status::kOk;
  NpuBindContext context(step.context);
  OXB_TRY(bind_step(context));
  if (!context.is_served()) return Status::kOk;
  layer->step = context.served();
  layer->cpu_run = step.run;
  layer->params = step.params;
  if (!placed_) check_layer(*layer);
  *claimed = layer->is_usable;
  return Status::kOk;
}

/// Once, while bytes are counted: reads the layer's bytes and asks the plug-in.
void NpuDevice::check_layer(NpuLayer& layer) {
  layer.spec.name = layer.step.y.name;
  layer.spec.depth = layer.step.x.width;
  layer.spec.channels = layer.step.channels;
  NpuWhy why;
  const auto leave = [&](const char* text) {
    model_.log(Log::kWarning, "step %u, giving '%.60s', stays on the CPU: plug-in '%.40s': %s",
               layer.index, layer.spec.name, handle_->name(), text);
    std::snprintf(unusable_.text, sizeof(unusable_.text), "%s", text);
  };
  if (layer.spec.result != OXB_NPU_EXACT_SUMS && !layer.step.has_codes) {
    return leave("the step has no scale for int8 results");
  }
  for (uint32_t i = 0; i < layer.spec.bucket_count; ++i) {
    const oxb_npu_bucket& bucket = layer.buckets[i];
    const uint64_t hash = hash_bytes(bucket.commands, bucket.command_bytes);
    if (hash_bytes(bucket.weights, bucket.weight_bytes, hash) != layer.hashes[i]) {
      return leave("its bytes are damaged");
    }
  }
  if (handle_->check(layer.spec, &layer.needs, &why) != OXB_NPU_OK) return leave(why.read());
  layer.is_usable = true;
}

uint32_t NpuDevice::layer_count() const {
  uint32_t count = 0;
  for (size_t i = 0; i < layer_count_; ++i) count += layers_[i].is_usable;
  return count;
}

Status NpuDevice::count(size_t* bytes, Error* error) {
  uint64_t total = 0, input = 0, output = 0, shadow = 0;
  const auto add = [&](uint64_t more, size_t alignment) {
    return checked_align(total, alignment, &total) && checked_add(total, more, &total) &&
           total <= SIZE_MAX / 4;
  };
  bool fits = true;
  needs_ = {};
  for (size_t i = 0; fits && i < layer_count_; ++i) {
    NpuLayer& layer = layers_[i];
    if (!layer.is_usable) continue;
    fits = add(layer.needs.host_bytes, layer.needs.host_alignment);
    layer.memory = static_cast<size_t>(total) - layer.needs.host_bytes;
    uint64_t in = 0, out = 0;
    const uint64_t rows = layer.largest().rows;
    fits = fits && checked_mul(rows, layer.spec.depth, &in) &&
           checked_mul(rows * layer.result_bytes(), layer.spec.channels, &out);
    input = std::max(input, in);
    output = std::max(output, out);
    shadow = std::max<uint64_t>(shadow, output_bytes(layer.step.y, layer.step.y.rows));
    needs_.host_bytes += layer.needs.host_bytes;
    needs_.device_bytes += layer.needs.device_bytes;
    needs_.fast_bytes = std::max(needs_.fast_bytes, layer.needs.fast_bytes);
    fits = fits && needs_.device_bytes <= SIZE_MAX / 4;
  }
  if (layer_count() == 0) {
    return fail(error, Status::kNoDevice, "plug-in '%.40s' can use none of the file's layers: %s",
                handle_->name(), unusable_.text[0] != '\0' ? unusable_.read() : "none is dense");
  }
  const size_t alignment = handle_->caps().alignment;
  fits = fits && add(input, alignment);
  input_ = static_cast<size_t>(total - input);
  // The guard in front of the output ends where that begins.
  fits = fits && add(kNpuGuardBytes, 1) && add(output, alignment);
  output_ = static_cast<size_t>(total - output);
  fits = fits && add(kNpuGuardBytes, 1);
  if (shadow_) fits = fits && add(shadow, kTensorAlignment);
  shadow_at_ = static_cast<size_t>(total - (shadow_ ? shadow : 0));
  if (!fits || !checked_align(total, kMemoryAlignment, &total)) {
    return fail(error, Status::kOutOfMemory, "the layers of an NPU do not fit in memory");
  }
  memory_bytes_ = static_cast<size_t>(total);
  *bytes = host_bytes() + needs_.device_bytes;
  return Status::kOk;
}

Status NpuDevice::place(Error* error) {
  memory_ = static_cast<std::byte*>(std::aligned_alloc(kMemoryAlignment, memory_bytes_));
  if (memory_ == nullptr) {
    return fail(error, Status::kOutOfMemory, "no memory for an NPU: %zu bytes", memory_bytes_);
  }
  std::memset(memory_, 0, memory_bytes_);
  placed_ = true;
  next_step_ = 0;  // All steps are bound again.
  return Status::kOk;
}

Status NpuDevice::load(Error* error) {
  for (size_t i = 0; i < layer_count_; ++i) {
    NpuLayer& layer = layers_[i];
    if (!layer.is_usable) continue;
    NpuWhy why;
    const oxb_npu_status status =
        handle_->load(layer.spec, memory_ + layer.memory, &layer.program, &why);
    if (status != OXB_NPU_OK) {
      return fail(error, status == OXB_NPU_NO_MEMORY ? Status::kOutOfMemory : Status::kNoDevice,
                  "plug-in '%.40s' cannot load '%.40s': %s", handle_->name(), layer.spec.name,
                  why.read());
    }
    const size_t taken = handle_->taken_bytes(layer.program);
    if (taken > layer.needs.device_bytes) {
      return fail(error, Status::kInternal,
                  "plug-in '%.40s' took %zu bytes for '%.40s' and had asked for %zu",
                  handle_->name(), taken, layer.spec.name, layer.needs.device_bytes);
    }
  }
  return Status::kOk;
}

size_t NpuDevice::taken_bytes() const {
  size_t bytes = memory_ == nullptr ? 0 : host_bytes();
  for (size_t i = 0; i < layer_count_; ++i) {
    if (layers_[i].program != nullptr) bytes += handle_->taken_bytes(layers_[i].program);
  }
  return bytes;
}

const NpuDevice* npu_device(const Session& session) {
  const Session& owner = session.lender == nullptr ? session : *session.lender;
  return owner.device.driver == &kNpuDevice ? static_cast<const NpuDevice*>(owner.device.self)
                                            : nullptr;
}

}  // namespace oxbow
