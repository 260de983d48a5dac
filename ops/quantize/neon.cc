// NEON rounds to the nearest, ties to even, gives 0 for NaN and narrows with saturation: what
// quantize.h spells out in several steps takes one each.

#include "ops/common/neon.h"

#include "ops/quantize/generic.h"
#include "ops/quantize/quantize.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

/// The element of each lane that is farthest from zero. NaN is never farther.
[[gnu::always_inline]] inline float32x4_t farther(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcagtq_f32(b, a), b, a);
}

/// Four codes in 32 bits, those beyond int8 not clamped yet.
[[gnu::always_inline]] inline int32x4_t codes_of(const float* x, float inverse) {
  return vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inverse));
}

struct Neon {
  using Vector = float32x4_t;
  static constexpr size_t kLanes = 4;

  [[gnu::always_inline]] static Vector load(const float* x) { return vld1q_f32(x); }
  [[gnu::always_inline]] static void store(float* x, Vector v) { vst1q_f32(x, v); }
  [[gnu::always_inline]] static Vector plus(Vector a, Vector b) { return vaddq_f32(a, b); }
  [[gnu::always_inline]] static Vector minus(Vector a, Vector b) { return vsubq_f32(a, b); }

  /// Each lane and its partner: the first of a pair adds, the second is taken from the first.
  [[gnu::always_inline]] static Vector hadamard_lanes(Vector v) {
    const float32x4_t swapped = vrev64q_f32(v);
    v = vtrn1q_f32(vaddq_f32(v, swapped), vsubq_f32(v, swapped));
    const float32x4_t turned = vextq_f32(v, v, 2);
    return vcombine_f32(vget_low_f32(vaddq_f32(v, turned)), vget_low_f32(vsubq_f32(v, turned)));
  }

  static float absmax(const float* x, size_t count) {
    float32x4_t most[4];
#pragma GCC unroll 4
    for (float32x4_t& lanes : most) lanes = vdupq_n_f32(0.0f);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) most[j] = farther(most[j], vld1q_f32(x + i + 4 * j));
    }
    for (; i + 4 <= count; i += 4) most[0] = farther(most[0], vld1q_f32(x + i));
    const float32x4_t lanes = farther(farther(most[0], most[1]), farther(most[2], most[3]));
    float result = vmaxvq_f32(vabsq_f32(lanes));
    for (; i < count; ++i) result = abs_f32(x[i]) > result ? abs_f32(x[i]) : result;
    return result;
  }

  static void codes(const float* x, size_t count, float inverse, int8_t* q) {
    const int8x16_t least = vdupq_n_s8(-kQuantMax);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const int16x8_t low =
          vqmovn_high_s32(vqmovn_s32(codes_of(x + i, inverse)), codes_of(x + i + 4, inverse));
      const int16x8_t high =
          vqmovn_high_s32(vqmovn_s32(codes_of(x + i + 8, inverse)), codes_of(x + i + 12, inverse));
      vst1q_s8(q + i, vmaxq_s8(vqmovn_high_s16(vqmovn_s16(low), high), least));
    }
    for (; i < count; ++i) q[i] = quantize_value(x[i], inverse);
  }
};

}  // namespace

void quantize_f32_i8_neon(float* x, size_t width, const RowForm& form, int8_t* q, float* scales) {
  quantize_with<Neon>(x, width, form, q, scales);
}

}  // namespace oxbow
