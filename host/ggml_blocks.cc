#include "host/ggml_blocks.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "host/ggml_codebooks.h"
#include "host/half.h"

namespace oxbow {
namespace {

// Integers of one block, then its values as scale * integer, or scale * integer - minimum. Products
// are made in ggml's order, so that the values are its own to the bit.

uint32_t byte(const std::byte* bytes, size_t i) { return std::to_integer<uint32_t>(bytes[i]); }
int32_t signed_byte(const std::byte* bytes, size_t i) { return std::bit_cast<int8_t>(bytes[i]); }

uint32_t word_at(const std::byte* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

/// Element i of 32 in 16 bytes: the lower halves first.
uint32_t nibble(const std::byte* bytes, size_t i) {
  return i < 16 ? byte(bytes, i) & 15 : byte(bytes, i - 16) >> 4;
}

float times(float scale, int32_t number) { return scale * static_cast<float>(number); }

void q8_0(const std::byte* b, float* y) {
  const float d = half_at(b);
  for (size_t i = 0; i < 32; ++i) y[i] = times(d, signed_byte(b + 2, i));
}

/// With sums of sixteen elements behind them, which say nothing new.
void q8_k(const std::byte* b, float* y) {
  const float d = std::bit_cast<float>(word_at(b));
  for (size_t i = 0; i < 256; ++i) y[i] = times(d, signed_byte(b + 4, i));
}

void q4_0(const std::byte* b, float* y) {
  const float d = half_at(b);
  for (size_t i = 0; i < 32; ++i) y[i] = times(d, static_cast<int32_t>(nibble(b + 2, i)) - 8);
}

void q4_1(const std::byte* b, float* y) {
  const float d = half_at(b), m = half_at(b + 2);
  for (size_t i = 0; i < 32; ++i) y[i] = times(d, static_cast<int32_t>(nibble(b + 4, i))) + m;
}

/// The fifth bits of 32 elements are those of a word.
int32_t five_bits(const std::byte* high, const std::byte* low, size_t i) {
  return static_cast<int32_t>(nibble(low, i) | (word_at(high) >> i & 1) << 4);
}

void q5_0(const std::byte* b, float* y) {
  const float d = half_at(b);
  for (size_t i = 0; i < 32; ++i) y[i] = times(d, five_bits(b + 2, b + 6, i) - 16);
}

void q5_1(const std::byte* b, float* y) {
  const float d = half_at(b), m = half_at(b + 2);
  for (size_t i = 0; i < 32; ++i) y[i] = times(d, five_bits(b + 4, b + 8, i)) + m;
}

constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

void iq4_nl(const std::byte* b, float* y) {
  const float d = half_at(b);
  for (size_t i = 0; i < 32; ++i) y[i] = times(d, kIq4Values[nibble(b + 2, i)]);
}

void iq4_xs(const std::byte* b, float* y) {
  const float d = half_at(b);
  const uint32_t high = byte(b, 2) | byte(b, 3) << 8;
  for (size_t group = 0; group < 8; ++group) {
    const uint32_t low = byte(b + 4, group / 2) >> (4 * (group % 2)) & 15;
    const uint32_t scale = low | (high >> (2 * group) & 3) << 4;
    const float dl = times(d, static_cast<int32_t>(scale) - 32);
    for (size_t i = 0; i < 32; ++i) {
      y[group * 32 + i] = times(dl, kIq4Values[nibble(b + 8 + group * 16, i)]);
    }
  }
}

/// Element i of 256 in the Q2_K way: 128 elements in 32 bytes, two bits each, 32 at a time.
uint32_t two_bits(const std::byte* bytes, size_t i) {
  return byte(bytes, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

void q2_k(const std::byte* b, float* y) {
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  for (size_t i = 0; i < 256; ++i) {
    const uint32_t scale = byte(b, i / 16);
    const float dl = times(d, static_cast<int32_t>(scale & 15));
    const float ml = times(dmin, static_cast<int32_t>(scale >> 4));
    y[i] = times(dl, static_cast<int32_t>(two_bits(b + 16, i))) - ml;
  }
}

/// The scale of group j of 16 in 12 bytes: four low bits each, then the two high bits.
int32_t q3_scale(const std::byte* scales, size_t j) {
  const uint32_t low = byte(scales, j % 8) >> (j < 8 ? 0 : 4) & 15;
  const uint32_t high = byte(scales, 8 + j % 4) >> (j / 4 * 2) & 3;
  return static_cast<int32_t>(low | high << 4) - 32;
}

void q3_k(const std::byte* b, float* y) {
  const float d = half_at(b + 108);
  for (size_t i = 0; i < 256; ++i) {
    const float dl = times(d, q3_scale(b + 96, i / 16));
    const uint32_t high = byte(b, i % 32) >> (i / 32) & 1;
    const int32_t number = static_cast<int32_t>(two_bits(b + 32, i)) - (high != 0 ? 0 : 4);
    y[i] = times(dl, number);
  }
}

struct ScaleAndMin {
  int32_t scale;
  int32_t min;
};

/// Those of group j of 8 in 12 bytes, six bits each.
ScaleAndMin k4_scale(const std::byte* s, size_t j) {
  if (j < 4) {
    return {static_cast<int32_t>(byte(s, j) & 63), static_cast<int32_t>(byte(s, j + 4) & 63)};
  }
  return {static_cast<int32_t>((byte(s, j + 4) & 15) | byte(s, j - 4) >> 6 << 4),
          static_cast<int32_t>(byte(s, j + 4) >> 4 | byte(s, j) >> 6 << 4)};
}

/// Element i of 256: 64 elements in 32 bytes, the lower halves first.
uint32_t k4_nibble(const std::byte* bytes, size_t i) {
  return byte(bytes, i / 64 * 32 + i % 32) >> (i % 64 < 32 ? 0 : 4) & 15;
}

/// Q4_K, and Q5_K with the fifth bits at `high`.
void k4(const std::byte* b, const std::byte* high, const std::byte* low, float* y) {
  const float d = half_at(b), dmin = half_at(b + 2);
  for (size_t i = 0; i < 256; ++i) {
    const ScaleAndMin group = k4_scale(b + 4, i / 32);
    const uint32_t fifth = high == nullptr ? 0 : byte(high, i % 32) >> (i / 32) & 1;
    const auto number = static_cast<int32_t>(k4_nibble(low, i) | fifth << 4);
    y[i] = times(times(d, group.scale), number) - times(dmin, group.min);
  }
}

void q4_k(const std::byte* b, float* y) { k4(b, nullptr, b + 16, y); }
void q5_k(const std::byte* b, float* y) { k4(b, b + 16, b + 48, y); }

void q6_k(const std::byte* b, float* y) {
  const float d = half_at(b + 208);
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const uint32_t low = byte(b, half * 64 + quarter % 2 * 32 + l) >> (quarter < 2 ? 0 : 4) & 15;
    const uint32_t high = byte(b + 128, half * 32 + l) >> (2 * quarter) & 3;
    const float scale = times(d, signed_byte(b + 192, i / 16));
    y[i] = times(scale, static_cast<int32_t>(low | high << 4) - 32);
  }
}

void tq2_0(const std::byte* b, float* y) {
  const float d = half_at(b + 64);
  for (size_t i = 0; i < 256; ++i) {
    y[i] = times(d, static_cast<int32_t>(two_bits(b, i)) - 1);
  }
}

/// Five digits to the base of 3 in a byte, as a fraction: the first is what comes before the point of
/// three times it.
int32_t trit(uint32_t packed, size_t digit) {
  constexpr uint32_t kPowers[] = {1, 3, 9, 27, 81};
  return static_cast<int32_t>((packed * kPowers[digit] & 255) * 3 >> 8) - 1;
}

void tq1_0(const std::byte* b, float* y) {
  const float d = half_at(b + 52);
  size_t i = 0;
  const auto digits = [&](size_t first, size_t count, size_t number) {
    for (size_t digit = 0; digit < number; ++digit) {
      for (size_t j = 0; j < count; ++j) y[i++] = times(d, trit(byte(b, first + j), digit));
    }
  };
  digits(0, 32, 5);
  digits(32, 16, 5);
  digits(48, 4, 4);
}

}  // namespace

void decode_ggml_block(Dtype dtype, const std::byte* block, float* values) {
  switch (dtype) {
    case Dtype::kQ8_0:
      return q8_0(block, values);
    case Dtype::kQ4_0:
      return q4_0(block, values);
    case Dtype::kQ4_1:
      return q4_1(block, values);
    case Dtype::kQ5_0:
      return q5_0(block, values);
    case Dtype::kQ5_1:
      return q5_1(block, values);
    case Dtype::kQ2_K:
      return q2_k(block, values);
    case Dtype::kQ3_K:
      return q3_k(block, values);
    case Dtype::kQ4_K:
      return q4_k(block, values);
    case Dtype::kQ5_K:
      return q5_k(block, values);
    case Dtype::kQ6_K:
      return q6_k(block, values);
    case Dtype::kIQ4_NL:
      return iq4_nl(block, values);
    case Dtype::kIQ4_XS:
      return iq4_xs(block, values);
    case Dtype::kTQ1_0:
      return tq1_0(block, values);
    case Dtype::kTQ2_0:
      return tq2_0(block, values);
    case Dtype::kQ8_K:
      return q8_k(block, values);
    default:
      decode_codebook_block(dtype, block, values);
  }
}

}  // namespace oxbow
