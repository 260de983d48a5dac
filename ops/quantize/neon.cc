// NEON rounds to the nearest, ties to even, gives 0 for NaN and narrows with saturation: what
// quantize.h spells out in several steps takes one each.

#include <arm_neon.h>

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

void quantize_f32_i8_neon(const float* x, size_t width, size_t groups, float static_scale,
                          int8_t* q, float* scales) {
  quantize_with<Neon>(x, width, groups, static_scale, q, scales);
}

}  // namespace oxbow
