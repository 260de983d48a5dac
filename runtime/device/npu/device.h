#pragma once

// Layers of a session on an accelerator: runtime/device.h on one side, a plug-in on the other.
//
//   memory: | of the programs, one after the other | input | guard | output | guard | codes | shadow |
//
// The session's own memory stays where it is; rows go to `input`, what comes back in `output` is finished by the op. Int8 codes
// of all rows are first collected in `codes`: the output of a chain may lie where its rows are. The CPU's way to run each step is
// kept: for few rows, for comparison, and for the day when the plug-in fails.

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "runtime/device/npu/handle.h"
#include "runtime/device/npu/npu_op.h"

namespace oxbow {

struct Session;

/// In front of an output and behind it.
inline constexpr size_t kNpuGuardBytes = 64;

/// What oxb_npu_report tells.
struct NpuCounts {
  uint64_t runs = 0;
  uint64_t rows = 0;
  uint64_t cpu_runs = 0;
  uint64_t nanoseconds = 0;
  uint64_t compared = 0;
  uint64_t different = 0;
  float largest_difference = 0.0f;
  uint32_t largest_step = 0;
};

/// A step, as its op told it.
struct NpuBound {
  bool is_served = false;
  NpuStep step;
  RunFunction cpu_run = nullptr;
  const void* params = nullptr;
};

/// Steps that are one run of the plug-in: one, or a chain.
struct NpuLayer {
  static constexpr size_t kMaxBuckets = 8;

  /// Of the first step, among those of all entry points.
  uint32_t index = 0;
  uint32_t entry = 0;
  uint32_t entry_step = 0;
  uint32_t step_count = 0;
  NpuBound* steps = nullptr;
  /// Of oxb_npu_layer, which points here.
  oxb_npu_bucket buckets[kMaxBuckets] = {};
  uint64_t hashes[kMaxBuckets] = {};
  oxb_npu_layer spec = {};
  oxb_npu_needs needs = {};
  /// The plug-in takes it.
  bool is_usable = false;
  size_t memory = 0;
  oxb_npu_program* program = nullptr;

  const NpuBound& first() const { return steps[0]; }
  const NpuBound& last() const { return steps[step_count - 1]; }
  bool has_codes() const { return spec.result != OXB_NPU_EXACT_SUMS; }
  size_t result_bytes() const { return has_codes() ? 1 : 4; }
  const oxb_npu_bucket& largest() const { return buckets[spec.bucket_count - 1]; }
};

class NpuDevice {
 public:
  static Status open(const Model& model, const DeviceOptions& options, NpuDevice** device,
                     Error* error);
  ~NpuDevice();
  NpuDevice(const NpuDevice&) = delete;
  NpuDevice& operator=(const NpuDevice&) = delete;

  Status bind(const DeviceStep& step, bool* claimed);
  Status count(size_t* bytes, Error* error);
  Status place(Error* error);
  Status load(Error* error);
  Status run(const DeviceRange& range, RunContext& context);
  void lose() { lost_ = true; }
  bool is_lost() const { return lost_; }
  size_t taken_bytes() const;

  const NpuCounts& counts() const { return counts_; }
  uint32_t layer_count() const;
  /// Of all layers' programs.
  const oxb_npu_needs& needs() const { return needs_; }
  size_t host_bytes() const { return memory_bytes_ + own_bytes(); }
  /// Null: the plug-in has kept its promises.
  const char* failure() const { return failed_ ? failure_.text : nullptr; }

 private:
  NpuDevice(const Model& model, const DeviceOptions& options);
  Status find_layers(Error* error);
  Status take_steps(Error* error);
  void add_offload(NpuLayer& layer, size_t offload);
  const char* why_unfit(const NpuLayer& layer) const;
  void check_layer(NpuLayer& layer);
  NpuLayer* find(uint32_t index);
  size_t own_bytes() const {
    return sizeof(*this) + layer_count_ * sizeof(NpuLayer) + step_count_ * sizeof(NpuBound);
  }

  Status run_layer(NpuLayer& layer, RunContext& context);
  bool run_bucket(NpuLayer& layer, uint32_t bucket, size_t first, size_t rows);
  Status finish(NpuLayer& layer, size_t first, size_t rows, RunContext& context);
  Status compare(NpuLayer& layer, size_t rows, RunContext& context);
  Status compare_codes(NpuLayer& layer, size_t rows, RunContext& context);
  void count_difference(const NpuLayer& layer, float a, float b);
  void refuse(const NpuLayer& layer, const char* why);

  const Model& model_;
  NpuHandle* handle_;
  size_t least_rows_;
  bool shadow_;
  /// By their first step; some steps may be in none.
  NpuLayer* layers_ = nullptr;
  size_t layer_count_ = 0;
  /// Of all layers.
  NpuBound* steps_ = nullptr;
  size_t step_count_ = 0;
  /// The step that bind sees next.
  uint32_t next_step_ = 0;
  bool placed_ = false;
  oxb_npu_needs needs_ = {};
  /// Of what no layer could be used for, the last reason.
  NpuWhy unusable_;
  size_t memory_bytes_ = 0, input_ = 0, output_ = 0, codes_ = 0, shadow_at_ = 0;
  /// Of the two regions with codes that compare_codes works in.
  size_t shadow_codes_ = 0;
  std::byte* memory_ = nullptr;
  bool failed_ = false;
  bool lost_ = false;
  NpuWhy failure_;
  NpuCounts counts_;
};

/// The device of a session that has one of this kind; otherwise null.
const NpuDevice* npu_device(const Session& session);

}  // namespace oxbow
