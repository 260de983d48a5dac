#pragma once

// Norms over equal parts of a row, such as heads: what bind checks, where a part's weights are, and the loop over rows
// and parts.

#include <cmath>
#include <cstddef>

#include "ops/common/checks.h"
#include "ops/common/row_output.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

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

/// A norm of x alone has none.
inline size_t norm_has_weights(const schema::Step& step) {
  return step.inputs() == nullptr || step.inputs()->size() != 1;
}

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

/// Positive, so that a row of equal values or of zeros divides by something.
inline Status check_epsilon(BindContext& context, float epsilon) {
  if (std::isfinite(epsilon) && epsilon > 0) return Status::kOk;
  return context.fail("epsilon is %g, expected a positive number", double{epsilon});
}

/// A bound step of a norm. `Norm` is what its kernel reads; move_on(groups, norm) goes to the weights of the next part.
template <typename Norm>
struct NormStep {
  Tensor x;
  RowOutput y;
  Norm norm;
  NormGroups groups;
  void (*kernel)(const float* x, size_t width, const Norm& norm, float* y);
};

template <typename Norm>
Status run_norm(RunContext& context, const void* params) {
  const auto& p = *static_cast<const NormStep<Norm>*>(params);
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t worker) {
    write_row(context, p.y, row, worker, [&](float* y) {
      const float* x = p.x.f32(row);
      Norm norm = p.norm;
      for (size_t g = 0; g < p.groups.count; ++g) {
        p.kernel(x, p.groups.width, norm, y);
        x += p.groups.width;
        y += p.groups.width;
        move_on(p.groups, norm);
      }
    });
  });
  return Status::kOk;
}

}  // namespace oxbow
