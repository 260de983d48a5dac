#pragma once

// Sums or means of rows that follow each other; see schema::PoolRowsOptions. For a row x[r] of T, with s[r] = x[r - front]
// and zeros for r < front:
//
//   y[j] = sum over r in group j of factor[r - first row of j] * s[r]      divided by the group's rows if `mean`
//
// Sums are taken from the first row to the last. F32.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

namespace schema {
struct PoolRowsOptions;
}

extern const OpSignature kPoolRowsSignature;
Status bind_pool_rows(BindContext& context, RunFunction* run);
Status bind_pool_rows_vulkan(VulkanBindContext& context);

struct PoolRowsParams {
  Tensor x[2];
  size_t sources;
  Tensor factors, mask, shape, y;
  uint32_t group;
  uint32_t front;
  bool mean, joins, has_factors, has_mask, has_shape;
};

/// How the rows of one x are cut.
struct PoolRowsCut {
  size_t rows = 0;
  size_t group = 1;
  size_t groups = 0;
};

/// What step and shapes tell, but for where data are.
PoolRowsParams read_pool_rows(const schema::PoolRowsOptions& options);
/// Of every x; sets the output's rows. Reads no data unless there is a mask or a shape.
Status cut_pool_rows(RunContext& context, const PoolRowsParams& params, PoolRowsCut (&cuts)[2]);

}  // namespace oxbow
