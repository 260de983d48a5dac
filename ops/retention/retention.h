#pragma once

// Retention of whole texts, as RetNet is trained and evaluated: what Recurrence gives token by token, but for a
// divisor that keeps values in bounds and that the norm behind removes up to its epsilon. For each head with decay w,
// over chunks of `chunk` tokens (0: all of them are one), i and j counted within the chunk:
//
//   n_i = sum of w^m for m = 0 to i            c_ij = (q_i . k_j) w^(i-j) / sqrt(n_i) for j <= i
//   y_i = (sum_j c_ij v_j + q_i w^(i+1) S / sqrt(n_i)) / max(clamp(sum_j |c_ij|, 1, limit), d)
//
// S [dk, dv] is what the chunks before left: S <- S w^chunk + sum_j w^(chunk-1-j) k_j^T v_j. d is the largest
// sum of absolute values of a column of S / n_(chunk-1), at least 1.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

struct RetentionHead {
  size_t tokens = 0, keys = 0, values = 0;
  /// 0: all tokens.
  size_t chunk = 0;
  float decay = 1, limit = 0;
  /// Rows are q_stride and v_stride floats apart.
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  size_t q_stride = 0, v_stride = 0;
  float* y = nullptr;
};

/// Floats of scratch for one head.
size_t retention_scratch(size_t keys, size_t values);
void retention_f32_f32_ref(const RetentionHead& head, float* scratch);

extern const OpSignature kRetentionSignature;

Status bind_retention(BindContext& context, RunFunction* run);

}  // namespace oxbow
