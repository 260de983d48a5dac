// One run of a layer: rows to the plug-in, what comes back to the op, and the CPU where the plug-in is not to be used.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/device/npu/device.h"
#include "runtime/model/model.h"

namespace oxbow {
namespace {

constexpr int kGuard = 0xa5;

bool is_whole(const std::byte* guard) {
  for (size_t i = 0; i < kNpuGuardBytes; ++i) {
    if (guard[i] != std::byte{kGuard}) return false;
  }
  return true;
}

/// The largest bucket that is full; what is less than the smallest is filled up.
uint32_t choose_bucket(const NpuLayer& layer, size_t rows) {
  uint32_t chosen = 0;
  for (uint32_t i = 1; i < layer.spec.bucket_count && layer.buckets[i].rows <= rows; ++i)
    chosen = i;
  return chosen;
}

/// A number of an output: of a float, or of a code and its row's scale.
float number_at(const Tensor& y, const std::byte* rows, const float* scales, size_t row,
                size_t column) {
  const std::byte* at = rows + row * y.stride();
  if (y.type == DataType::kF32) return reinterpret_cast<const float*>(at)[column];
  const size_t group = column / (y.width / y.scale_groups);
  return static_cast<float>(reinterpret_cast<const int8_t*>(at)[column]) *
         scales[row * y.scale_groups + group];
}

}  // namespace

Status NpuDevice::run(const DeviceRange& range, RunContext& context) {
  if (lost_) return fail(context.error, Status::kDeviceLost, "the NPU is lost");
  for (uint32_t i = range.first_step; i < range.end_step;) {
    const uint64_t start = now_nanoseconds();
    NpuLayer& layer = *find(i);
    OXB_TRY(run_layer(layer, context));
    if (range.timed != nullptr) range.timed(range.timed_context, i, now_nanoseconds() - start);
    i += layer.step_count;
  }
  return Status::kOk;
}

namespace {

/// As if there were no plug-in.
Status run_on_cpu(const NpuLayer& layer, RunContext& context) {
  for (uint32_t i = 0; i < layer.step_count; ++i) {
    OXB_TRY(layer.steps[i].cpu_run(context, layer.steps[i].params));
  }
  return Status::kOk;
}

}  // namespace

Status NpuDevice::run_layer(NpuLayer& layer, RunContext& context) {
  const size_t rows = context.rows(layer.first().step.x);
  if (failed_ || rows < least_rows_) {
    counts_.cpu_runs += rows != 0;
    return run_on_cpu(layer, context);
  }
  const uint64_t start = now_nanoseconds();
  for (size_t first = 0; first < rows && !failed_;) {
    const uint32_t bucket = choose_bucket(layer, rows - first);
    const size_t count = std::min<size_t>(layer.buckets[bucket].rows, rows - first);
    if (run_bucket(layer, bucket, first, count)) {
      if (layer.has_codes()) {
        std::memcpy(memory_ + codes_ + first * layer.spec.channels, memory_ + output_,
                    count * layer.spec.channels);
      } else {
        OXB_TRY(finish(layer, first, count, context));
      }
    }
    first += count;
  }
  if (failed_) {
    counts_.nanoseconds += now_nanoseconds() - start;
    ++counts_.cpu_runs;
    return run_on_cpu(layer, context);
  }
  if (layer.has_codes() && !shadow_) OXB_TRY(finish(layer, 0, rows, context));
  counts_.nanoseconds += now_nanoseconds() - start;
  ++counts_.runs;
  counts_.rows += rows;
  if (!shadow_) return Status::kOk;
  return layer.has_codes() ? compare_codes(layer, rows, context) : compare(layer, rows, context);
}

/// From what came back for some rows to the output.
Status NpuDevice::finish(NpuLayer& layer, size_t first, size_t rows, RunContext& context) {
  NpuRows came = {first, rows};
  if (layer.has_codes()) {
    came.codes = reinterpret_cast<const int8_t*>(memory_ + codes_);
  } else {
    came.sums = reinterpret_cast<const int32_t*>(memory_ + output_);
  }
  return layer.last().step.finish(context, layer.last().params, came);
}

/// False: the plug-in is not used any more.
bool NpuDevice::run_bucket(NpuLayer& layer, uint32_t bucket, size_t first, size_t rows) {
  const Tensor& x = layer.first().step.x;
  const size_t depth = layer.spec.depth, all = layer.buckets[bucket].rows;
  std::byte* input = memory_ + input_;
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(input + r * depth, x.data + (first + r) * x.stride(), depth);
  }
  std::memset(input + rows * depth, 0, (all - rows) * depth);
  std::byte* output = memory_ + output_;
  const size_t output_bytes = all * layer.spec.channels * layer.result_bytes();
  std::byte* guards[] = {output - kNpuGuardBytes, output + output_bytes};
  for (std::byte* guard : guards) std::memset(guard, kGuard, kNpuGuardBytes);
  NpuWhy why;
  if (handle_->run(layer.program, bucket, input, output, &why) != OXB_NPU_OK) {
    refuse(layer, why.read());
  } else if (!is_whole(guards[0]) || !is_whole(guards[1])) {
    refuse(layer, "it has written outside of its output");
  } else if (handle_->taken_bytes(layer.program) > layer.needs.device_bytes) {
    refuse(layer, "it has taken more memory during a run");
  }
  return !failed_;
}

/// From now on the CPU does its work.
void NpuDevice::refuse(const NpuLayer& layer, const char* why) {
  failed_ = true;
  std::snprintf(failure_.text, sizeof(failure_.text), "'%.30s': %.80s", layer.spec.name, why);
  (void)failure_.read();  // A name is cut wherever that is.
  model_.log(Log::kWarning,
             "plug-in '%.40s' failed in step %u, giving %s; the CPU goes on in its place",
             handle_->name(), layer.index, failure_.text);
}

/// What the plug-in gave is kept aside, computed again by the CPU, and compared.
Status NpuDevice::compare(NpuLayer& layer, size_t rows, RunContext& context) {
  const Tensor& y = layer.last().step.y;
  const std::byte* output =
      y.data != nullptr ? y.data : reinterpret_cast<const std::byte*>(context.caller_output);
  std::byte* kept = memory_ + shadow_at_;
  auto* kept_scales = reinterpret_cast<float*>(kept + rows * y.stride());
  std::memcpy(kept, output, rows * y.stride());
  if (y.type == DataType::kI8) {
    std::memcpy(kept_scales, y.scales, rows * y.scale_groups * sizeof(float));
  }
  OXB_TRY(run_on_cpu(layer, context));
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < y.width; ++c) {
      count_difference(layer, number_at(y, kept, kept_scales, r, c),
                       number_at(y, output, y.scales, r, c));
    }
  }
  return Status::kOk;
}

/// Codes are compared with those of the stated formula, before the CPU's steps may write over the rows; what the CPU gives is
/// believed.
Status NpuDevice::compare_codes(NpuLayer& layer, size_t rows, RunContext& context) {
  const Tensor& x = layer.first().step.x;
  auto* from = reinterpret_cast<int8_t*>(memory_ + shadow_at_);
  int8_t* to = from + shadow_codes_;
  for (size_t r = 0; r < rows; ++r) std::memcpy(from + r * x.width, x.i8(r), x.width);
  for (uint32_t i = 0; i < layer.step_count; ++i) {
    const NpuBound& bound = layer.steps[i];
    const NpuCodes codes = {i + 1 == layer.step_count, handle_->rounds_integers()};
    bound.step.formula(bound.params, codes, from, rows, to);
    std::swap(from, to);
  }
  const auto* codes = reinterpret_cast<const int8_t*>(memory_ + codes_);
  for (size_t i = 0; i < rows * layer.spec.channels; ++i) {
    count_difference(layer, codes[i], from[i]);
  }
  return run_on_cpu(layer, context);
}

void NpuDevice::count_difference(const NpuLayer& layer, float a, float b) {
  ++counts_.compared;
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  ++counts_.different;
  const float difference = std::fabs(a - b);
  if (difference > counts_.largest_difference || std::isnan(difference)) {
    counts_.largest_difference = difference;
    counts_.largest_step = layer.index;
  }
}

}  // namespace oxbow
