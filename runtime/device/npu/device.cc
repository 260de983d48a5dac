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
  delete[] steps_;
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

Status NpuDevice::bind(const DeviceStep& step, bool* claimed) {
  *claimed = false;
  const uint32_t index = next_step_++;
  NpuLayer* layer = find(index);
  const DeviceBind bind_step = step.op.bind_device[static_cast<size_t>(DeviceKind::kNpu)];
  if (layer == nullptr) return Status::kOk;
  NpuBound& bound = layer->steps[index - layer->index];
  if (bind_step != nullptr) {
    NpuBindContext context(step.context);
    OXB_TRY(bind_step(context));
    bound = {context.is_served(), context.served(), step.run, step.params};
  }
  if (!placed_ && index == layer->index + layer->step_count - 1) check_layer(*layer);
  // While bytes are counted the steps of a chain do not know this yet: it is asked again.
  *claimed = layer->is_usable;
  return Status::kOk;
}

/// Once, while bytes are counted: reads the layer's bytes and asks the plug-in.
void NpuDevice::check_layer(NpuLayer& layer) {
  layer.spec.name = layer.last().step.y.name;
  layer.spec.depth = layer.first().step.x.width;
  layer.spec.channels = layer.last().step.channels;
  NpuWhy why;
  const auto leave = [&](const char* text) {
    model_.log(Log::kWarning, "step %u, giving '%.60s', stays on the CPU: plug-in '%.40s': %s",
               layer.index, layer.spec.name, handle_->name(), text);
    std::snprintf(unusable_.text, sizeof(unusable_.text), "%s", text);
  };
  if (const char* wrong = why_unfit(layer); wrong != nullptr) return leave(wrong);
  if (layer.spec.result > handle_->caps().result)
    return leave("it gives looser results than it says");
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
  uint64_t total = 0, input = 0, output = 0, codes = 0, shadow = 0, shadow_codes = 0;
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
    if (!layer.has_codes()) {
      const Tensor& y = layer.last().step.y;
      shadow = std::max<uint64_t>(shadow, output_bytes(y, y.rows));
    }
    // All rows of a run, and for comparison what enters and leaves each step.
    for (uint32_t s = 0; layer.has_codes() && s < layer.step_count; ++s) {
      const NpuStep& step = layer.steps[s].step;
      const size_t widest = std::max<size_t>(step.x.width, step.channels);
      codes = std::max<uint64_t>(codes, uint64_t{step.x.rows} * layer.spec.channels);
      shadow_codes = std::max<uint64_t>(shadow_codes, uint64_t{step.x.rows} * widest);
    }
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
  fits = fits && add(codes, kTensorAlignment);
  codes_ = static_cast<size_t>(total - codes);
  if (!shadow_) shadow = shadow_codes = 0;
  fits = fits && shadow_codes <= SIZE_MAX / 8;
  shadow = std::max(shadow, 2 * shadow_codes);
  shadow_codes_ = static_cast<size_t>(shadow_codes);
  fits = fits && add(shadow, kTensorAlignment);
  shadow_at_ = static_cast<size_t>(total - shadow);
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
