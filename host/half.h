#pragma once

// The two 16-bit floats of checkpoints, widened exactly.

#include <bit>
#include <cstdint>

namespace oxbow {

/// bfloat16 is the upper half of a float.
inline float float_from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// IEEE half precision: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
inline float float_from_f16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    // Zero and subnormals: mantissa * 2^-24 is exact in float.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace oxbow
