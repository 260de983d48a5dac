#pragma once

// NEON for kernels that serve 64-bit and 32-bit ARM. The smaller set lacks the instructions that take the high half of a
// register or work across one; they are made of two here, under the names they have in the larger set. 32-bit NEON takes
// subnormals for zero (docs/numerics.md). In an unnamed namespace, as all that is compiled with an ISA's flags.

#if defined(__ARM_NEON)

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "runtime/base/weight_blocks.h"

namespace oxbow {
namespace {

#if !defined(__aarch64__)

#define OXB_NEON [[gnu::always_inline, maybe_unused]] inline

OXB_NEON int16x8_t vmovl_high_s8(int8x16_t v) { return vmovl_s8(vget_high_s8(v)); }
OXB_NEON int32x4_t vmovl_high_s16(int16x8_t v) { return vmovl_s16(vget_high_s16(v)); }
OXB_NEON int16x8_t vmull_high_s8(int8x16_t a, int8x16_t b) {
  return vmull_s8(vget_high_s8(a), vget_high_s8(b));
}
OXB_NEON int16x8_t vmlal_high_s8(int16x8_t sum, int8x16_t a, int8x16_t b) {
  return vmlal_s8(sum, vget_high_s8(a), vget_high_s8(b));
}
OXB_NEON int32x4_t vmlal_high_s16(int32x4_t sum, int16x8_t a, int16x8_t b) {
  return vmlal_s16(sum, vget_high_s16(a), vget_high_s16(b));
}
OXB_NEON int16x8_t vqmovn_high_s32(int16x4_t low, int32x4_t high) {
  return vcombine_s16(low, vqmovn_s32(high));
}
OXB_NEON int8x16_t vqmovn_high_s16(int8x8_t low, int16x8_t high) {
  return vcombine_s8(low, vqmovn_s16(high));
}
OXB_NEON int32x4_t vpaddq_s32(int32x4_t a, int32x4_t b) {
  return vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)),
                      vpadd_s32(vget_low_s32(b), vget_high_s32(b)));
}
OXB_NEON float32x4_t vpaddq_f32(float32x4_t a, float32x4_t b) {
  return vcombine_f32(vpadd_f32(vget_low_f32(a), vget_high_f32(a)),
                      vpadd_f32(vget_low_f32(b), vget_high_f32(b)));
}
OXB_NEON int8x16_t vuzp1q_s8(int8x16_t a, int8x16_t b) { return vuzpq_s8(a, b).val[0]; }
OXB_NEON float32x4_t vtrn1q_f32(float32x4_t a, float32x4_t b) { return vtrnq_f32(a, b).val[0]; }
OXB_NEON int8_t vminvq_s8(int8x16_t v) {
  int8x8_t least = vpmin_s8(vget_low_s8(v), vget_high_s8(v));
  least = vpmin_s8(least, least);
  least = vpmin_s8(least, least);
  return vget_lane_s8(vpmin_s8(least, least), 0);
}
OXB_NEON float vmaxvq_f32(float32x4_t v) {
  const float32x2_t most = vpmax_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(vpmax_f32(most, most), 0);
}
/// For what becomes int8: beyond 16 bits it is clamped. NaN gives 0.
OXB_NEON int32x4_t vcvtnq_s32_f32(float32x4_t v) {
  const float32x4_t limit = vdupq_n_f32(32767.0f), magic = vdupq_n_f32(12582912.0f);
  const uint32x4_t number = vceqq_f32(v, v);
  v = vmaxq_f32(vminq_f32(v, limit), vnegq_f32(limit));
  const int32x4_t rounded =
      vsubq_s32(vreinterpretq_s32_f32(vaddq_f32(v, magic)), vreinterpretq_s32_f32(magic));
  return vandq_s32(rounded, vreinterpretq_s32_u32(number));
}
#define vshll_high_n_u16(v, bits) vshll_n_u16(vget_high_u16(v), bits)
#define vdupq_laneq_s32(v, lane) \
  vdupq_lane_s32((lane) < 2 ? vget_low_s32(v) : vget_high_s32(v), (lane) % 2)

#undef OXB_NEON

#endif  // __aarch64__

/// The low halves of both, or the high ones.
[[gnu::always_inline, maybe_unused]] inline float32x4_t low_halves(float32x4_t a, float32x4_t b) {
#if defined(__aarch64__)
  return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
#else
  return vcombine_f32(vget_low_f32(a), vget_low_f32(b));
#endif
}
[[gnu::always_inline, maybe_unused]] inline float32x4_t high_halves(float32x4_t a, float32x4_t b) {
#if defined(__aarch64__)
  return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
#else
  return vcombine_f32(vget_high_f32(a), vget_high_f32(b));
#endif
}

/// Eight numbers of 16 bits.
[[gnu::always_inline, maybe_unused]] inline float32x4x2_t load_f16(const F16* from) {
#if defined(__aarch64__)
  const float16x8_t eight = vreinterpretq_f16_u16(vld1q_u16(&from->bits));
  return {{vcvt_f32_f16(vget_low_f16(eight)), vcvt_high_f32_f16(eight)}};
#else
  // Not every 32-bit core converts them.
  float eight[8];
  for (size_t i = 0; i < 8; ++i) eight[i] = to_f32(from[i]);
  return {{vld1q_f32(eight), vld1q_f32(eight + 4)}};
#endif
}

}  // namespace
}  // namespace oxbow

#endif  // __ARM_NEON
