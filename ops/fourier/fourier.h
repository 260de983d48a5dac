#pragma once

// Mixing by the Fourier transform (FNet, Lee-Thorp et al. 2021):
//
//   y[t][k] = real part of sum over s, j of x[s][j] e^(-2 pi i (s t / T + j k / W))
//
// for any number of rows T. The rows are transformed first; of the result, which for real rows is symmetric, y itself
// holds one half: the real part of frequency k in column k, the imaginary part in column W - k. Then the columns k
// and W - k become, in place, the result of both.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/fft.h"
#include "runtime/op.h"

namespace oxbow {

/// Two rows in every lane, one as the real part and one as the imaginary.
inline constexpr size_t kFourierRows = 2 * kFftLanes;

/// Rows transformed by a plan of their width, `count` of them, at most kFourierRows. `room` as for columns.
void fourier_rows_f32_f32_ref(const FftPlan& plan, const float* x, size_t count, float* y,
                              float* room);

/// Pairs of columns, from number `first` on: pair 0 is column 0 and, if the width is even, W / 2; pair k the columns
/// k and W - k. By a plan of the number of rows. `room` has fourier_room_floats of it.
void fourier_columns_f32_ref(const FftPlan& plan, size_t width, size_t first, size_t count,
                             float* y, float* room);

constexpr size_t fourier_pairs(size_t width) { return (width + 1) / 2; }
constexpr size_t fourier_room_floats(size_t n) { return 2 * n * kFftLanes + fft_room_floats(n); }

extern const OpSignature kFourierSignature;
Status bind_fourier(BindContext& context, RunFunction* run);

}  // namespace oxbow
