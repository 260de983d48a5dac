#pragma once

// The discrete Fourier transform of any length, X[k] = sum over j of x[j] e^(-2 pi i j k / n), for kFftLanes
// sequences side by side: element j of lane l is at [j * kFftLanes + l]. A length is cut into its prime factors, pairs
// of twos into fours; the cost is n times the sum of the factors, so that a large prime costs as much as a matrix.
// Same bits on every machine: twiddles by sincos.h, plain products and sums in a fixed order.

#include <cstddef>
#include <cstdint>

namespace oxbow {

inline constexpr size_t kFftLanes = 8;

/// Floats of the twiddles of a length, and of the room one transform works in.
constexpr size_t fft_table_floats(size_t n) { return 2 * n; }
constexpr size_t fft_room_floats(size_t n) { return 2 * n * kFftLanes; }

struct FftPlan {
  size_t n = 0;
  size_t count = 0;
  /// A 32-bit length has no more.
  uint32_t factors[32] = {};
  /// cos and -sin of 2 pi j / n.
  const float* real = nullptr;
  const float* imaginary = nullptr;
};

/// 1 <= n < 2^32. The table is kept.
FftPlan fft_plan(size_t n, float* table);

/// In place.
void fft(const FftPlan& plan, float* real, float* imaginary, float* room);

}  // namespace oxbow
