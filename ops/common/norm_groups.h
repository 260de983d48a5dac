#pragma once

// Norms over equal parts of a row, such as heads: what bind checks, and where a part's weights are.

#include <cstddef>

#include "ops/common/checks.h"
#include "runtime/op.h"

namespace oxbow {

struct NormGroups {
  size_t count = 1;
  size_t width = 0;
  /// Every part has weights of its own.
  bool own_weights = true;

  /// The weights of the next part; null stays null.
  const float* next(const float* weights) const {
    return own_weights && weights != nullptr ? weights + width : weights;
  }
};

/// `weight` is null when there is none.
inline Status check_norm_groups(BindContext& context, const Tensor& x, uint32_t count,
                                const Tensor* weight, NormGroups* groups) {
  if (count == 0 || x.width % count != 0) {
    return context.fail("groups is %u, expected a divisor of the width %u", count, x.width);
  }
  groups->count = count;
  groups->width = x.width / count;
  groups->own_weights = weight == nullptr || weight->width != groups->width;
  if (weight == nullptr) return Status::kOk;
  return check_width(context, *weight, groups->own_weights ? x.width : groups->width);
}

}  // namespace oxbow
