#pragma once

// What an op tells an accelerator about one step: rows of int8 that go there, and how what comes back becomes the step's
// output. The runtime knows no op, the op no plug-in.

#include <cstddef>
#include <cstdint>

#include "runtime/op.h"

namespace oxbow {

/// What came back for rows [first, first + rows) of a run.
struct NpuRows {
  size_t first = 0;
  size_t rows = 0;
  /// [rows][channels]; one of the two.
  const int32_t* sums = nullptr;
  const int8_t* codes = nullptr;
};

using NpuFinish = Status (*)(RunContext& context, const void* params, const NpuRows& rows);

/// Which codes of a step: of the last one of a chain, or of one alone, those that NpuFinish takes; otherwise those of the
/// step's output. Accelerators round sums in float32 or in integers.
struct NpuCodes {
  bool is_last = false;
  bool in_integers = false;
};

/// What accelerators with int8 results are compared with: codes of rows `x`, which lie close together like `y`.
using NpuFormula = void (*)(const void* params, const NpuCodes& codes, const int8_t* x, size_t rows,
                            int8_t* y);

struct NpuStep {
  /// I8; its rows count those of the run.
  Tensor x;
  /// Where the CPU writes; without data the output is the caller's.
  Tensor y;
  uint32_t channels = 0;
  /// Static rows, and int8 results have a scale.
  bool has_codes = false;
  /// And nothing else than these makes the output, which is static too.
  bool may_lead = false;
  /// With the params of the op's own bind.
  NpuFinish finish = nullptr;
  NpuFormula formula = nullptr;
};

class NpuBindContext : public DeviceBindContext {
 public:
  explicit NpuBindContext(BindContext& step) : step_(step) {}

  BindContext& step() { return step_; }
  /// An op that does not call it leaves the step to the CPU.
  void serve(const NpuStep& served) {
    served_ = served;
    is_served_ = true;
  }

  bool is_served() const { return is_served_; }
  const NpuStep& served() const { return served_; }

 private:
  BindContext& step_;
  NpuStep served_;
  bool is_served_ = false;
};

}  // namespace oxbow
