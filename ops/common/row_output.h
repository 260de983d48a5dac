#pragma once

// The output of an op that computes float rows: F32 takes them as they are, I8 by way of a row of
// scratch for each thread, since a scale is known only when its whole row is. Either may want rows turned first.

#include <cstddef>

#include "ops/quantize/quantize.h"
#include "runtime/op.h"

namespace oxbow {

struct RowOutput {
  Tensor y;
  QuantizeKernel quantize = nullptr;
  /// Floats of scratch for each thread.
  size_t scratch_stride = 0;
};

/// `y` is plain F32 or I8. Asks for the scratch; it takes the first bytes.
Status bind_row_output(BindContext& context, const Tensor& y, RowOutput* output);

/// Row `row` of the output is what compute(float*) writes; called by thread `worker`.
template <typename Compute>
void write_row(const RunContext& context, const RowOutput& output, size_t row, size_t worker,
               const Compute& compute) {
  Tensor y = output.y;
  if (y.type == DataType::kF32) {
    compute(y.f32(row));
    finish_row(output.quantize, y, row);
    return;
  }
  float* values = reinterpret_cast<float*>(context.scratch) + worker * output.scratch_stride;
  compute(values);
  quantize_into(output.quantize, values, y, row);
}

}  // namespace oxbow
