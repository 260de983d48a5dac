#pragma once

// Elements of weights that have fewer bits than int8 or float, as they lie in the file; schema/model.fbs draws the layouts.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace oxbow {

/// Rows of every block of a weight.
inline constexpr size_t kBlockRows = 8;

/// IEEE half precision, and the upper half of an IEEE float.
struct F16 {
  uint16_t bits = 0;
};
struct BF16 {
  uint16_t bits = 0;
};

inline constexpr size_t kI4BlockColumns = 32;
/// Added to a code so that it has no sign.
inline constexpr int kI4Offset = 8;
struct I4Block {
  F16 scales[kBlockRows];
  uint8_t codes[kBlockRows * kI4BlockColumns / 2];
};
static_assert(sizeof(I4Block) == 144);

/// Codes have no sign; min is what code 0 stands for.
struct I4MinBlock {
  F16 scales[kBlockRows];
  F16 mins[kBlockRows];
  uint8_t codes[kBlockRows * kI4BlockColumns / 2];
};
static_assert(sizeof(I4MinBlock) == 160);

inline constexpr size_t kTernaryBlockColumns = 16;
inline constexpr int kTernaryOffset = 1;
struct TernaryBlock {
  uint8_t codes[kBlockRows * kTernaryBlockColumns / 4];
};
static_assert(sizeof(TernaryBlock) == 32);

/// Exact. In integers: nothing depends on how a core treats subnormal numbers.
[[gnu::always_inline]] inline float to_f32(F16 half) {
  const uint32_t sign = (half.bits & 0x8000u) << 16, exponent = (half.bits >> 10) & 0x1fu;
  const uint32_t fraction = half.bits & 0x3ffu;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | sign);
  }
  const uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}
[[gnu::always_inline]] inline float to_f32(BF16 half) {
  return std::bit_cast<float>(uint32_t{half.bits} << 16);
}

/// To the nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
inline F16 to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (size >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (size < 0x38800000u) {
    // Below the smallest normal half. Adding 0.5 leaves multiples of 2^-24 in the low bits, rounded.
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}
inline BF16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// Four bits of a row and a column of a block of 32 columns.
inline int four_bits(const uint8_t* codes, size_t row, size_t column) {
  const uint8_t byte = codes[(column % 16 / 4 * kBlockRows + row) * 4 + column % 4];
  return column < 16 ? byte & 15 : byte >> 4;
}
inline void set_four_bits(uint8_t* codes, size_t row, size_t column, int bits) {
  uint8_t& byte = codes[(column % 16 / 4 * kBlockRows + row) * 4 + column % 4];
  bits &= 15;
  byte = static_cast<uint8_t>(column < 16 ? (byte & 0xf0) | bits : (byte & 0x0f) | bits << 4);
}

/// The code of a row and a column of a block.
inline int code_of(const I4Block& block, size_t row, size_t column) {
  return four_bits(block.codes, row, column) - kI4Offset;
}
inline int code_of(const I4MinBlock& block, size_t row, size_t column) {
  return four_bits(block.codes, row, column);
}
inline int code_of(const TernaryBlock& block, size_t row, size_t column) {
  return (block.codes[row * 4 + column % 4] >> column / 4 * 2 & 3) - kTernaryOffset;
}
inline void set_code(I4Block& block, size_t row, size_t column, int code) {
  set_four_bits(block.codes, row, column, code + kI4Offset);
}
inline void set_code(I4MinBlock& block, size_t row, size_t column, int code) {
  set_four_bits(block.codes, row, column, code);
}
inline void set_code(TernaryBlock& block, size_t row, size_t column, int code) {
  uint8_t& byte = block.codes[row * 4 + column % 4];
  const size_t shift = column / 4 * 2;
  byte = static_cast<uint8_t>((byte & ~(3 << shift)) | ((code + kTernaryOffset) & 3) << shift);
}

}  // namespace oxbow
