#pragma once

// The second operand of an element-wise op: as many rows as the first or one for all of them, and as many
// columns or fewer, each of which then serves the same number of neighbours: a gate for each head.

#include <cstddef>

#include "ops/common/checks.h"
#include "runtime/op.h"

namespace oxbow {

struct Broadcast {
  bool one_row = false;
  /// Neighbours of the first operand that an element serves.
  size_t repeat = 1;

  bool plain() const { return !one_row && repeat == 1; }
};

/// Whether all rows of `a` meet the only one of `b`.
inline bool is_one_row(const Tensor& a, const Tensor& b) {
  const bool one = a.rows == 1 && a.rows_symbol < 0;
  return b.rows == 1 && b.rows_symbol < 0 && !one;
}

/// Checks that `b`, F32 as `a`, fits it.
inline Status check_broadcast(BindContext& context, const Tensor& a, const Tensor& b,
                              Broadcast* broadcast) {
  broadcast->one_row = is_one_row(a, b);
  if (!broadcast->one_row) OXB_TRY(check_same_rows(context, a, b));
  if (b.width == 0 || a.width % b.width != 0) {
    return context.fail("tensor '%s' is %s, expected a width of %u or a divisor", b.name,
                        describe(b).text, a.width);
  }
  broadcast->repeat = a.width / b.width;
  return Status::kOk;
}

/// y_i = function(a_i, b of i) for a row of `width` elements.
template <typename Function>
void broadcast_row(const float* a, const float* b, size_t width, size_t repeat, float* y,
                   const Function& function) {
  for (size_t i = 0; i < width; i += repeat, ++b) {
    for (size_t j = i; j < i + repeat; ++j) y[j] = function(a[j], *b);
  }
}

}  // namespace oxbow
