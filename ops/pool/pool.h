#pragma once

// x [n, group * W] -> y [n, W]: y_i is the mean or the largest of x_i, x_(W+i), x_(2W+i), ... of
// its row, or, of neighbours, of x_(i group), x_(i group + 1), ... The mean adds from the first to the
// last, then divides. NaN wins over every number.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

/// One row.
void pool_mean_f32_f32_ref(const float* x, size_t group, size_t width, float* y);
void pool_max_f32_f32_ref(const float* x, size_t group, size_t width, float* y);

void pool_mean_neighbours_f32_f32_ref(const float* x, size_t group, size_t width, float* y);
void pool_max_neighbours_f32_f32_ref(const float* x, size_t group, size_t width, float* y);

extern const OpSignature kPoolSignature;
Status bind_pool(BindContext& context, RunFunction* run);
Status bind_pool_vulkan(VulkanBindContext& context);

}  // namespace oxbow
