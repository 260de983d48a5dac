#include "host/ggml_codebooks.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "host/half.h"

namespace oxbow {
namespace {

#include "host/ggml_codebooks.inc"

// Products are made in ggml's order, so that the values are its own to the bit.

uint32_t byte(const std::byte* bytes, size_t i) { return std::to_integer<uint32_t>(bytes[i]); }

uint32_t short_at(const std::byte* bytes, size_t i) {
  return byte(bytes, 2 * i) | byte(bytes, 2 * i + 1) << 8;
}

uint32_t word_at(const std::byte* bytes, size_t i) {
  return short_at(bytes, 2 * i) | short_at(bytes, 2 * i + 1) << 16;
}

uint32_t nibble(const std::byte* bytes, size_t i) { return byte(bytes, i / 2) >> (i % 2 * 4) & 15; }

constexpr float kTwoBits[] = {8, 25, 43};
constexpr float kThreeBits[] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr float kOddThreeBits[] = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr float kOneBit[] = {-1, 0, 1};
// Halves are the unit, so that all are integers.
constexpr float kFloat4[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The signs of eight elements in seven bits: there is an even number of minus signs.
uint32_t even_signs(uint32_t bits) {
  bits &= 127;
  return bits | static_cast<uint32_t>(std::popcount(bits) % 2) << 7;
}

/// Element i of a row, and its sign: a set bit is minus.
float signed_value(float scale, float value, uint32_t signs, size_t i) {
  return scale * value * ((signs >> i & 1) != 0 ? -1.0f : 1.0f);
}

void two_bit_row(float scale, uint32_t row, uint32_t signs, float* y) {
  for (size_t i = 0; i < 8; ++i) y[i] = signed_value(scale, kTwoBits[row >> (2 * i) & 3], signs, i);
}

/// Two rows of four, and the signs of all eight.
void three_bit_rows(float scale, const float* values, uint32_t first, uint32_t second,
                    uint32_t signs, float* y) {
  for (size_t i = 0; i < 8; ++i) {
    const uint32_t row = i < 4 ? first : second;
    y[i] = signed_value(scale, values[row >> (3 * (i % 4)) & 7], signs, i);
  }
}

void one_bit_row(float scale, uint32_t row, float delta, float* y) {
  for (size_t i = 0; i < 8; ++i) y[i] = scale * (kOneBit[row >> (2 * i) & 3] + delta);
}

/// A scale of four bits lies between half a step and fifteen and a half.
float middle(float d, uint32_t scale) { return d * (0.5f + static_cast<float>(scale)); }

void iq2_xxs(const std::byte* b, float* y) {
  for (size_t group = 0; group < 8; ++group) {
    const std::byte* const of = b + 2 + 8 * group;
    const uint32_t signs = word_at(of, 1);
    const float scale = middle(half_at(b), signs >> 28) * 0.25f;
    for (size_t i = 0; i < 4; ++i) {
      two_bit_row(scale, kIq2XxsRows[byte(of, i)], even_signs(signs >> (7 * i)),
                  y + 32 * group + 8 * i);
    }
  }
}

void iq2_xs(const std::byte* b, float* y) {
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t code = short_at(b + 2, i);
    const float scale = middle(half_at(b), nibble(b + 66, i / 2)) * 0.25f;
    two_bit_row(scale, kIq2XsRows[code & 511], even_signs(code >> 9), y + 8 * i);
  }
}

void iq2_s(const std::byte* b, float* y) {
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t high = byte(b + 66, i / 4) >> (2 * (i % 4)) & 3;
    const float scale = middle(half_at(b), nibble(b + 74, i / 2)) * 0.25f;
    two_bit_row(scale, kIq2SRows[byte(b + 2, i) | high << 8], byte(b + 34, i), y + 8 * i);
  }
}

void iq3_xxs(const std::byte* b, float* y) {
  const std::byte* const rows = b + 2;
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t signs = word_at(b + 66, i / 4);
    const float scale = middle(half_at(b), signs >> 28) * 0.5f;
    three_bit_rows(scale, kThreeBits, kIq3XxsRows[byte(rows, 2 * i)],
                   kIq3XxsRows[byte(rows, 2 * i + 1)], even_signs(signs >> (7 * (i % 4))),
                   y + 8 * i);
  }
}

void iq3_s(const std::byte* b, float* y) {
  const auto row = [&](size_t i) {
    return kIq3SRows[byte(b + 2, i) | (byte(b + 66, i / 8) >> (i % 8) & 1) << 8];
  };
  for (size_t i = 0; i < 32; ++i) {
    const float scale = half_at(b) * static_cast<float>(1 + 2 * nibble(b + 106, i / 4));
    three_bit_rows(scale, kOddThreeBits, row(2 * i), row(2 * i + 1), byte(b + 74, i), y + 8 * i);
  }
}

constexpr float kDelta = 0.125f;

void iq1_s(const std::byte* b, float* y) {
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t high = short_at(b + 34, i / 4);
    const float scale = half_at(b) * static_cast<float>(2 * (high >> 12 & 7) + 1);
    const uint32_t row = byte(b + 2, i) | (high >> (3 * (i % 4)) & 7) << 8;
    one_bit_row(scale, kIq1SRows[row], (high >> 15) != 0 ? -kDelta : kDelta, y + 8 * i);
  }
}

void iq1_m(const std::byte* b, float* y) {
  const std::byte* const scales = b + 48;
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) bits |= (short_at(scales, i) >> 12) << (4 * i);
  const float d = float_from_f16(static_cast<uint16_t>(bits));
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t part = short_at(scales, i / 8) >> (3 * (i / 2 % 4)) & 7;
    const uint32_t high = nibble(b + 32, i);
    one_bit_row(d * static_cast<float>(2 * part + 1), kIq1SRows[byte(b, i) | (high & 7) << 8],
                (high & 8) != 0 ? -kDelta : kDelta, y + 8 * i);
  }
}

void mxfp4(const std::byte* b, float* y) {
  // A power of two, halved since the numbers are doubled.
  const uint32_t exponent = byte(b, 0);
  const float d =
      std::bit_cast<float>(exponent < 2 ? uint32_t{0x00200000} << exponent : (exponent - 1) << 23);
  for (size_t i = 0; i < 32; ++i) {
    y[i] = d * kFloat4[byte(b + 1, i % 16) >> (i < 16 ? 0 : 4) & 15];
  }
}

/// A scale of eight bits without a sign, four of them its exponent, halved as above.
float small_float(uint32_t bits) {
  if (bits == 0 || bits == 0x7f) return 0;
  const auto exponent = static_cast<int>(bits >> 3 & 15), digits = static_cast<int>(bits & 7);
  const float value = exponent == 0
                          ? std::ldexp(static_cast<float>(digits), -9)
                          : std::ldexp(1.0f + static_cast<float>(digits) / 8.0f, exponent - 7);
  return value * 0.5f;
}

void nvfp4(const std::byte* b, float* y) {
  for (size_t i = 0; i < 64; ++i) {
    const size_t group = i / 16, inside = i % 16;
    const uint32_t code = byte(b + 4, 8 * group + inside % 8) >> (inside < 8 ? 0 : 4) & 15;
    y[i] = small_float(byte(b, group)) * kFloat4[code];
  }
}

}  // namespace

bool decode_codebook_block(Dtype dtype, const std::byte* block, float* values) {
  struct Row {
    Dtype dtype;
    void (*decode)(const std::byte* block, float* values);
  };
  constexpr Row kRows[] = {
      {Dtype::kIQ2_XXS, iq2_xxs}, {Dtype::kIQ2_XS, iq2_xs}, {Dtype::kIQ2_S, iq2_s},
      {Dtype::kIQ3_XXS, iq3_xxs}, {Dtype::kIQ3_S, iq3_s},   {Dtype::kIQ1_S, iq1_s},
      {Dtype::kIQ1_M, iq1_m},     {Dtype::kMXFP4, mxfp4},   {Dtype::kNVFP4, nvfp4},
  };
  for (const Row& row : kRows) {
    if (row.dtype != dtype) continue;
    row.decode(block, values);
    return true;
  }
  return false;
}

}  // namespace oxbow
