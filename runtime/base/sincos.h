#pragma once

// Sine and cosine of position * frequency, for every 64-bit position, with the same bits on every
// machine.
//
// A stream may be longer than a double can multiply by a frequency without losing the angle: at
// 2^53 its last bit is a whole radian. So the angle is counted in turns as a binary fraction:
//
//   frequency / 2 pi  modulo 1      128 bits of fraction, from 256 bits of 1 / 2 pi
//   times position    modulo 1      integer multiplication drops the whole turns by itself; the
//                                   error of 2^-128 grows to 2^-64 of a turn at most
//   nearest quarter, and the rest   to double, |angle| <= pi / 4, polynomials of fdlibm
//
// Forced inline for the reason given in math.h.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace oxbow {

struct SinCos {
  double sin = 0;
  double cos = 0;
};

/// position * |frequency| / 2 pi modulo 1, in units of 2^-64, rounded down. `frequency` is finite.
[[gnu::always_inline]] inline uint64_t turns_of(uint64_t position, float frequency) {
  // 1 / 2 pi; the first word has the highest bits.
  constexpr uint32_t kInverse[8] = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770,
                                    0x36d8a566, 0x4f10e410, 0x7f9458ea, 0xf7aef158};
  const uint32_t bits = std::bit_cast<uint32_t>(frequency);
  const uint32_t biased = bits >> 23 & 0xff;
  const uint32_t mantissa = biased == 0 ? bits & 0x7fffff : (bits & 0x7fffff) | 0x800000;
  // |frequency| = mantissa * 2^exponent, from -149 to 104.
  const int32_t exponent = static_cast<int32_t>(biased == 0 ? 1 : biased) - 150;

  // mantissa / 2 pi: word 5 is the integer, those behind it the fraction. The zeros in front are what
  // a shift to the right pulls in.
  uint32_t product[14] = {};
  uint64_t carry = 0;
  for (size_t i = 8; i-- > 0;) {
    carry += uint64_t{mantissa} * kInverse[i];
    product[6 + i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  product[5] = static_cast<uint32_t>(carry);

  // The 128 bits from 2^-1 on after shifting by the exponent, the lowest word first.
  const auto first = static_cast<size_t>(6 * 32 + exponent);
  uint32_t step[4];
  for (size_t i = 0; i < 4; ++i) {
    const size_t word = first / 32 + (3 - i);
    const uint64_t both = uint64_t{product[word]} << 32 | product[word + 1];
    step[i] = static_cast<uint32_t>(both >> (32 - first % 32));
  }

  // Modulo 2^128, of which the two upper words stay.
  const uint64_t low = position & 0xffffffffu, high = position >> 32;
  uint32_t angle[4];
  uint64_t carry_low = 0, carry_high = 0;
  for (size_t i = 0; i < 4; ++i) {
    carry_low += low * step[i];
    uint64_t sum = carry_low & 0xffffffffu;
    carry_low >>= 32;
    if (i > 0) {
      carry_high += high * step[i - 1];
      sum += carry_high & 0xffffffffu;
      carry_high >>= 32;
    }
    angle[i] = static_cast<uint32_t>(sum);
    carry_low += sum >> 32;
  }
  return uint64_t{angle[3]} << 32 | angle[2];
}

/// Of so many 2^-64 parts of a turn, with an error of about one unit in the last place of a double.
[[gnu::always_inline]] inline SinCos sincos_of_turns(uint64_t turns) {
  const uint64_t quarter = (turns + (uint64_t{1} << 61)) >> 62;
  const auto rest = static_cast<int64_t>(turns - (quarter << 62));
  const double x = static_cast<double>(rest) * 0x1.921fb54442d18p-62;  // 2 pi / 2^64
  const double z = x * x;

  double s = 1.58969099521155010221e-10;
  s = s * z - 2.50507602534068634195e-08;
  s = s * z + 2.75573137070700676789e-06;
  s = s * z - 1.98412698298579493134e-04;
  s = s * z + 8.33333333332248946124e-03;
  s = s * z - 1.66666666666666324348e-01;
  s = x + x * z * s;

  double c = -1.13596475577881948265e-11;
  c = c * z + 2.08757232129817482790e-09;
  c = c * z - 2.75573143513906633035e-07;
  c = c * z + 2.48015872894767294178e-05;
  c = c * z - 1.38888888888741095749e-03;
  c = c * z + 4.16666666666666019037e-02;
  c = 1.0 - (0.5 * z - z * z * c);

  const double sin = quarter & 1 ? c : s;
  const double cos = quarter & 1 ? s : c;
  return {quarter & 2 ? -sin : sin, (quarter + 1) & 2 ? -cos : cos};
}

/// NaN for a frequency that is not finite.
[[gnu::always_inline]] inline SinCos sincos_of(uint64_t position, float frequency) {
  const uint32_t bits = std::bit_cast<uint32_t>(frequency);
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return {kNan, kNan};
  }
  SinCos result = sincos_of_turns(turns_of(position, frequency));
  if (bits >> 31 != 0) result.sin = -result.sin;
  return result;
}

}  // namespace oxbow
