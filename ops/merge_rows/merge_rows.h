#pragma once

// y = x with the rows whose mask is not 0 replaced by those of `rows`, in order: the reverse of
// select_rows. A run whose mask marks another number of rows than there are fails.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kMergeRowsSignature;
/// Inputs x, rows, mask I32 [T, 1]; F32.
Status bind_merge_rows(BindContext& context, RunFunction* run);
Status bind_merge_rows_vulkan(VulkanBindContext& context);

struct MergeRowsParams {
  Tensor x, rows, mask, y;
};

/// Fails unless the mask marks as many rows as there are.
Status check_marked_rows(RunContext& context, const MergeRowsParams& params, uint32_t marked);

}  // namespace oxbow
