#pragma once

// Float maths that gives the same bits on every machine: only IEEE +, -, *, / and integer steps, a
// fixed order, no library calls. Built with -ffp-contract=off. A SIMD variant that performs the
// same steps in each of its lanes gives the same bits; where a select is written `a < b ? a : b`,
// keep that operand order, it decides what happens to NaN.
//
// Everything here is forced inline: ISA files include it, and a copy compiled with their flags must
// never become the one the linker keeps for everyone. Only where a file is compiled for size are the functions without
// loops of the caller's a file's own, to be called: nothing becomes a vector there.

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__OPTIMIZE_SIZE__)
#define OXB_MATH static inline
#else
#define OXB_MATH [[gnu::always_inline]] inline
#endif

namespace oxbow {

/// Partial results of every float reduction: lane i takes elements i, i + 8, i + 16, ...
inline constexpr size_t kLanes = 8;

/// Adding and subtracting 1.5 * 2^23 leaves |v| < 2^22 rounded to the nearest integer, ties to
/// even; the low bits of the sum are that integer.
inline constexpr float kRoundMagic = 12582912.0f;

/// Pairwise, as a 256-bit register folds: halves, then quarters, then the last two.
[[gnu::always_inline]] inline float combine_sums(const float (&s)[kLanes]) {
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/// Sum of term(i) for i in [0, count), in the order all variants share.
template <typename Term>
[[gnu::always_inline]] inline float sum_f32(size_t count, const Term& term) {
  float s[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) s[lane] += term(i + lane);
  }
  for (size_t lane = 0; i + lane < count; ++lane) s[lane] += term(i + lane);
  return combine_sums(s);
}

/// Sum of a[i] * b[i]; every product is rounded before it is added.
OXB_MATH float dot_f32(const float* a, const float* b, size_t count) {
  return sum_f32(
      count, [=](size_t i) __attribute__((always_inline)) { return a[i] * b[i]; });
}

/// Largest term(i), at least `floor`. NaN terms are passed over, so no order is visible.
template <typename Term>
[[gnu::always_inline]] inline float max_f32(size_t count, float floor, const Term& term) {
  float m[kLanes];
  for (float& lane : m) lane = floor;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    // Eight lanes at once: GCC makes scalar code of the selects once it has unrolled them.
#pragma GCC unroll 1
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = term(i + lane);
      m[lane] = value > m[lane] ? value : m[lane];
    }
  }
  for (size_t lane = 0; i + lane < count; ++lane) {
    const float value = term(i + lane);
    m[lane] = value > m[lane] ? value : m[lane];
  }
  float result = m[0];
  for (float lane : m) result = lane > result ? lane : result;
  return result;
}

/// |v| by its bits, so that it is the same for NaN and costs one instruction.
[[gnu::always_inline]] inline float abs_f32(float v) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0x7fffffffu);
}

/// e^x with a relative error below 2e-7. exp(0) is exactly 1; exp(NaN) is NaN; exp(inf) is inf.
/// Results below the smallest normal number are 0: subnormals are slow on some machines and absent
/// on others.
///
/// x = n ln2 + r with |r| <= ln2 / 2; e^x = 2^n e^r; e^r = 1 + r + r^2 P(r), P from Cephes' expf.
OXB_MATH float exp_f32(float x) {
  constexpr float kLowest = -87.33654f;  // ln 2^-126
  constexpr float kHighest = 89.0f;      // beyond overflow
  float v = x > kHighest ? kHighest : x;
  v = v < kLowest ? kLowest : v;

  const float shifted = v * 1.44269504088896341f + kRoundMagic;
  const float n = shifted - kRoundMagic;
  // ln2 in two parts; the first has nine bits, so that n times it is exact.
  const float r = (v - n * 0.693359375f) - n * -2.12194440e-4f;

  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = (p * (r * r) + r) + 1.0f;

  // 2^n in two factors, since n = 128 has no exponent of its own. Unsigned, so that the nonsense a
  // NaN leaves here is defined; the product with it stays NaN.
  const int32_t exponent =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRoundMagic));
  const uint32_t half = static_cast<uint32_t>(exponent >> 1);
  const uint32_t rest = static_cast<uint32_t>(exponent) - half;
  const float scaled =
      e * std::bit_cast<float>((half + 127u) << 23) * std::bit_cast<float>((rest + 127u) << 23);
  return x < kLowest ? 0.0f : scaled;
}

/// Natural logarithm within 2 units in the last place. log(1) is exactly 0, log(0) is -inf, log(inf)
/// is inf; of negative numbers and of NaN it is NaN. Subnormals count as 0, as exp_f32 gives none.
///
/// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); ln(1 + f) = f - f^2 / 2 + f^3 P(f), P from
/// Cephes' logf.
OXB_MATH float log_f32(float x) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
  constexpr float kSmallest = 1.17549435e-38f;
  constexpr float kLargest = 3.40282347e+38f;
  constexpr float kInfinity = __builtin_inff();
  const uint32_t shifted = std::bit_cast<uint32_t>(x) - kSqrtHalf;
  const auto n = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float f = std::bit_cast<float>((shifted & 0x007fffffu) + kSqrtHalf) - 1.0f;

  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  // ln2 in two parts as in exp_f32; small terms first.
  const float tail = (p * f * z + n * -2.12194440e-4f) - 0.5f * z;
  float result = (f + tail) + n * 0.693359375f;
  result = x > kLargest ? x : result;
  result = x < kSmallest ? -kInfinity : result;
  result = x < 0.0f ? __builtin_nanf("") : result;
  return x == x ? result : x;
}

/// ln(1 + x) of x in [0, 1], with a relative error below 5e-7 however small x is: what 1 + x lost of x
/// by rounding is put right by the ratio of the two.
OXB_MATH float log1p_f32(float x) {
  const float sum = 1.0f + x;
  const float kept = sum - 1.0f;
  // 1 stands for 0, so that no lane divides by it.
  const float ratio = x / (kept == 0.0f ? 1.0f : kept);
  return kept == 0.0f ? x : log_f32(sum) * ratio;
}

/// 1 / (1 + e^-x).
OXB_MATH float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

/// Relative error below 2e-7; tanh(-x) is -tanh(x).
///
/// Near zero 1 - 2 / (e^2x + 1) cancels; there x + x^3 P(x^2), P from Cephes' tanhf.
OXB_MATH float tanh_f32(float x) {
  const float z = abs_f32(x);
  const float far = 1.0f - 2.0f / (exp_f32(2.0f * z) + 1.0f);

  const float square = x * x;
  float p = -5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const float near = p * square * z + z;

  const float result = z < 0.625f ? near : far;
  return x < 0.0f ? -result : result;
}

/// 1 - erf(|x|) with an absolute error below 6e-7: 1.5e-7 of the formula, Abramowitz and
/// Stegun 7.1.26, and six or seven roundings of terms up to 1.5.
OXB_MATH float erfc_abs_f32(float x) {
  const float z = abs_f32(x);
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  return p * t * exp_f32(-(z * z));
}

OXB_MATH float erf_f32(float x) {
  const float tail = 1.0f - erfc_abs_f32(x);
  return x < 0.0f ? -tail : tail;
}

}  // namespace oxbow

#undef OXB_MATH
