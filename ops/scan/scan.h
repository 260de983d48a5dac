#pragma once

// Recurrences whose state is a few vectors: each channel goes from row to row by itself. Rules and their
// inputs are told in schema/model.fbs (ScanRule); the sums of WeightedAverage are kept as multiples of e^most,
// so that no exponential overflows.
//
// States are float and updated in place. Rows are taken one after the other, so how a stream is cut into runs
// does not change its results.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// As schema::ScanRule, without its header.
enum class ScanRule : uint8_t {
  kWeightedAverage = 0,
  kSelective = 1,
  kGatedLinear = 2,
  kExponentialGates = 3,
};

inline constexpr size_t kScanInputs = 6;
inline constexpr size_t kScanStates = 3;
inline constexpr size_t kScanOutputs = 3;
/// Channels of one call at most.
inline constexpr size_t kScanBlock = 64;

/// What a kernel reads and writes. Tensors are in the order of the schema, states apart.
struct ScanArgs {
  ScanRule rule = ScanRule::kWeightedAverage;
  size_t rows = 0;
  /// Channels of a row, and what the schema calls N.
  size_t width = 0;
  size_t depth = 0;
  const float* in[kScanInputs] = {};
  float* state[kScanStates] = {};
  float* out[kScanOutputs] = {};
  /// GatedLinear: the first row is the first of its stream.
  bool starts = false;
  /// WeightedAverage with a window: its rows, the position of the first row, the last row of the bonus.
  size_t window = 1;
  uint64_t position = 0;
  uint64_t last_position = 0;
  /// Keys and values before the run, in rings of window - 1 rows.
  const float* past[2] = {};
  RingPosition ring;
};

/// Channels [begin, end) of all rows; at most kScanBlock.
using ScanKernel = void (*)(const ScanArgs& args, size_t begin, size_t end);

#define OXB_KERNEL(isa, fn) void fn(const ScanArgs& args, size_t begin, size_t end);
#include "ops/scan/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kScanSignature;
Status bind_scan(BindContext& context, RunFunction* run);
Status bind_scan_vulkan(VulkanBindContext& context);

}  // namespace oxbow
