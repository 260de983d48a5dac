#pragma once

// The deterministic parameter-free projection of fast weight programmers (Schlag et al. 2021). Of a head's
// x, d long, with r = relu([x, -x]) and n = 2 d:
//
//   f_((i-1) n + j) = r_j * r_(j - i mod n)   for i = 1 to `order`
//   y = f / (sum(f) + epsilon)
//
// The sum has the lanes of math.h.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

/// One head; y has 2 * width * order elements.
void feature_map_f32_f32_ref(const float* x, size_t width, size_t order, float epsilon, float* y);

extern const OpSignature kFeatureMapSignature;

Status bind_feature_map(BindContext& context, RunFunction* run);
Status bind_feature_map_vulkan(VulkanBindContext& context);

}  // namespace oxbow
