#pragma once

// y = x with rows of one value behind it, up to a multiple of a number of rows. How many there are is told by the
// output's row symbol, which this op sets.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kPadRowsSignature;
Status bind_pad_rows(BindContext& context, RunFunction* run);
Status bind_pad_rows_vulkan(VulkanBindContext& context);

struct PadRowsParams {
  Tensor x, y;
  uint32_t multiple, above;
  int32_t value;
};

/// Sets the output's rows, and tells them.
Status count_padded_rows(RunContext& context, const PadRowsParams& params, uint32_t* all);

}  // namespace oxbow
