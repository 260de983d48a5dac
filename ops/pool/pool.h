#pragma once

// x [n, group * W] -> y [n, W]: y_i is the mean or the largest of x_i, x_(W+i), x_(2W+i), ... of
// its row. The mean adds from the first vector to the last, then divides. NaN wins over every
// number.

#include <cstddef>

#include "runtime/op.h"

namespace oxbow {

/// One row.
void pool_mean_f32_f32_ref(const float* x, size_t group, size_t width, float* y);
void pool_max_f32_f32_ref(const float* x, size_t group, size_t width, float* y);

Status bind_pool(BindContext& context, RunFunction* run);
Status bind_pool_vulkan(VulkanBindContext& context);

}  // namespace oxbow
