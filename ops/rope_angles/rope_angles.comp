#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// runtime/base/sincos.h for shaders, one thread for each angle. Devices have no doubles: sine and cosine are computed in
// fixed point with 62 bits behind the point, which leaves the floats the CPU's but for one in many millions.
// Values: rows times frequencies, the position of the first row (low and high word), rows from which on it stays the same.

layout(constant_id = 0) const uint frequency_count = 1;
layout(std430, binding = 1) writeonly buffer Y { float y[]; };
layout(std430, binding = 2) readonly buffer Frequencies { uint frequencies[]; };

// 64 bits: x is the low word.
uvec2 add_64(uvec2 a, uvec2 b) {
  uint carry;
  const uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}

uvec2 subtract_64(uvec2 a, uvec2 b) {
  uint borrow;
  const uint low = usubBorrow(a.x, b.x, borrow);
  return uvec2(low, a.y - b.y - borrow);
}

// a * b / 2^62, rounded down, for products below 2^126.
uvec2 multiply_fixed(uvec2 a, uvec2 b) {
  uint low_high, low_low, mid_high, mid_low, other_high, other_low, high_high, high_low, carry, more;
  umulExtended(a.x, b.x, low_high, low_low);
  umulExtended(a.x, b.y, mid_high, mid_low);
  umulExtended(a.y, b.x, other_high, other_low);
  umulExtended(a.y, b.y, high_high, high_low);
  const uint second = uaddCarry(uaddCarry(low_high, mid_low, carry), other_low, more);
  const uvec2 top =
      add_64(add_64(uvec2(high_low, high_high), uvec2(mid_high, 0u)), add_64(uvec2(other_high, 0u), uvec2(carry + more, 0u)));
  return uvec2(top.x << 2 | second >> 30, top.y << 2 | top.x >> 30);
}

// As turns_of().
uvec2 turns_of(uvec2 position, uint bits) {
  const uint inverse[8] = uint[8](0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u,
                                  0x7f9458eau, 0xf7aef158u);
  const uint biased = bits >> 23 & 0xffu;
  const uint mantissa = biased == 0u ? bits & 0x7fffffu : (bits & 0x7fffffu) | 0x800000u;
  uint product[14];
  for (uint i = 0u; i < 5u; ++i) product[i] = 0u;
  uint carried = 0u;
  for (uint i = 8u; i-- > 0u;) {
    uint high, low, carry;
    umulExtended(mantissa, inverse[i], high, low);
    product[6u + i] = uaddCarry(low, carried, carry);
    carried = high + carry;
  }
  product[5] = carried;

  const uint first = 192u + max(biased, 1u) - 150u;
  uint step[4];
  for (uint i = 0u; i < 4u; ++i) {
    const uint word = first / 32u + (3u - i), shift = first % 32u;
    step[i] = shift == 0u ? product[word] : product[word] << shift | product[word + 1u] >> (32u - shift);
  }

  // Of the product modulo 2^128 the upper half; its lowest word only carries.
  uint high, low, carry, more;
  uint words[4] = uint[4](0u, 0u, 0u, 0u);
  for (uint j = 0u; j < 2u; ++j) {
    carried = 0u;
    for (uint i = 0u; i + j < 4u; ++i) {
      umulExtended(j == 0u ? position.x : position.y, step[i], high, low);
      words[i + j] = uaddCarry(uaddCarry(words[i + j], low, carry), carried, more);
      carried = high + carry + more;
    }
  }
  return uvec2(words[2], words[3]);
}

// 62 bits behind the point, rounded to nearest.
float to_float(uvec2 fixed_point, bool negative) {
  if (fixed_point == uvec2(0u)) return 0.0;
  const int top = fixed_point.y != 0u ? 32 + findMSB(fixed_point.y) : findMSB(fixed_point.x);
  uint mantissa = 0u;
  if (top <= 23) {
    mantissa = fixed_point.x << uint(23 - top);
  } else {
    const uint shift = uint(top - 23);
    const uint below = shift - 1u;
    const uint kept = shift < 32u ? fixed_point.y << (32u - shift) | fixed_point.x >> shift : fixed_point.y >> (shift - 32u);
    const uint rounds = below < 32u ? fixed_point.x >> below & 1u : fixed_point.y >> (below - 32u) & 1u;
    mantissa = kept + rounds;
  }
  // A mantissa that rounding made 2^24 carries into the exponent.
  const uint bits = (uint(top - 62 + 127) << 23) + (mantissa - 0x800000u);
  return uintBitsToFloat(bits | (negative ? 0x80000000u : 0u));
}

// From turns with 64 bits behind the point to radians with 62.
const uvec2 half_pi = uvec2(0x10b4611au, 0x6487ed51u);

// Terms of both series: 1 / n! with 62 bits behind the point.
const uvec2 factorials[18] = uvec2[18](
    uvec2(0x00000000u, 0x40000000u), uvec2(0x00000000u, 0x40000000u), uvec2(0x00000000u, 0x20000000u),
    uvec2(0xaaaaaaabu, 0x0aaaaaaau), uvec2(0xaaaaaaabu, 0x02aaaaaau), uvec2(0x88888889u, 0x00888888u),
    uvec2(0x16c16c17u, 0x0016c16cu), uvec2(0x03403403u, 0x00034034u), uvec2(0x80680680u, 0x00006806u),
    uvec2(0xf1d2ab64u, 0x00000b8eu), uvec2(0xe4fb778au, 0x00000127u), uvec2(0xe64567f5u, 0x0000001au),
    uvec2(0x3ddb1dffu, 0x00000002u), uvec2(0x2c248c27u, 0x00000000u), uvec2(0x03272e95u, 0x00000000u),
    uvec2(0x0035cfe8u, 0x00000000u), uvec2(0x00035cfeu, 0x00000000u), uvec2(0x000032a6u, 0x00000000u));

// The alternating series in z from 1 / first! on, every second factorial: cosine from 0, sine over x from 1.
uvec2 series(uvec2 z, uint first) {
  uvec2 sum = uvec2(0u);
  for (uint n = 16u + first;; n -= 2u) {
    sum = subtract_64(factorials[n], multiply_fixed(z, sum));
    if (n == first) return sum;
  }
}

void main() {
  const uint at = element_index();
  if (at >= dispatch.values[0]) return;
  const uint row = at / frequency_count, i = at % frequency_count;
  const uint bits = frequencies[word_at(2u, i)];
  const uint place = row * frequency_count * 2u + i;
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    y[word_at(1u, place)] = y[word_at(1u, place + frequency_count)] = uintBitsToFloat(0x7fc00000u);
    return;
  }
  const uvec2 position = add_64(uvec2(dispatch.values[1], dispatch.values[2]), uvec2(min(row, dispatch.values[3]), 0u));
  const uvec2 turns = turns_of(position, bits);
  const uint quarter = (turns.y + 0x20000000u) >> 30;
  uvec2 rest = uvec2(turns.x, turns.y - (quarter << 30));
  const bool negative = rest.y >= 0x80000000u;
  if (negative) rest = subtract_64(uvec2(0u), rest);
  const uvec2 x = multiply_fixed(rest, half_pi);
  const uvec2 z = multiply_fixed(x, x);
  const uvec2 sine = multiply_fixed(x, series(z, 1u)), cosine = series(z, 0u);
  const bool swaps = (quarter & 1u) != 0u;
  const bool sine_negative = (swaps ? false : negative) != ((quarter & 2u) != 0u);
  const bool cosine_negative = (swaps ? negative : false) != (((quarter + 1u) & 2u) != 0u);
  y[word_at(1u, place)] = to_float(swaps ? cosine : sine, sine_negative != (bits >> 31 != 0u));
  y[word_at(1u, place + frequency_count)] = to_float(swaps ? sine : cosine, cosine_negative);
}
