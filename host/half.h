#pragma once

// The two 16-bit floats of checkpoints, widened exactly.

#include <cstddef>
#include <cstdint>

#include "runtime/base/weight_blocks.h"

namespace oxbow {

/// bfloat16 is the upper half of a float.
inline float float_from_bf16(uint16_t bits) { return to_f32(BF16{bits}); }

/// IEEE half precision: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
inline float float_from_f16(uint16_t bits) { return to_f32(F16{bits}); }

/// The same of two bytes anywhere, the lower one first.
inline float half_at(const std::byte* bytes) {
  return float_from_f16(static_cast<uint16_t>(std::to_integer<uint32_t>(bytes[0]) |
                                              std::to_integer<uint32_t>(bytes[1]) << 8));
}

}  // namespace oxbow
