#include "runtime/base/sincos.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace oxbow {
namespace {

struct Expected {
  long double sin, cos;
};

/// In halves of the position, each of whose products with 24 bits is exact in a long double of 64.
/// Where long double has fewer bits the library's own reduction is all the same correct for what it
/// is given, so positions are kept small there.
Expected expected(uint64_t position, float frequency) {
  const long double low = static_cast<long double>(position & 0xffffffffu) * frequency;
  const long double high = static_cast<long double>(position >> 32) * 0x1p32L * frequency;
  return {std::sin(low) * std::cos(high) + std::cos(low) * std::sin(high),
          std::cos(low) * std::cos(high) - std::sin(low) * std::sin(high)};
}

/// One unit in the last place of the float nearest to `value`.
double float_ulp(long double value) {
  const float nearest = std::fabs(static_cast<float>(value));
  return double{std::nextafter(nearest, 2.0f)} - double{nearest};
}

void expect_close(uint64_t position, float frequency) {
  const SinCos actual = sincos_of(position, frequency);
  const Expected e = expected(position, frequency);
  // Of the double: its last place, and 2^-64 of a turn for the greatest positions.
  ASSERT_NEAR(actual.sin, static_cast<double>(e.sin), 4e-16) << position << " * " << frequency;
  ASSERT_NEAR(actual.cos, static_cast<double>(e.cos), 4e-16) << position << " * " << frequency;
  // Of the float: half a unit in the last place is what rounding alone costs.
  const double sin = static_cast<float>(actual.sin), cos = static_cast<float>(actual.cos);
  ASSERT_LE(std::fabs(sin - static_cast<double>(e.sin)), 0.501 * float_ulp(e.sin) + 1e-18);
  ASSERT_LE(std::fabs(cos - static_cast<double>(e.cos)), 0.501 * float_ulp(e.cos) + 1e-18);
}

TEST(SinCos, FollowsTheLibraryAtEveryPositionAndFrequency) {
  constexpr bool kLongDoubleIsLong = std::numeric_limits<long double>::digits >= 64;
  for (int pair = 0; pair < 64; ++pair) {
    const float frequency = std::pow(10000.0f, -static_cast<float>(pair) / 64.0f);
    for (uint64_t position = 0; position < 2000; ++position) expect_close(position, frequency);
    for (int bit = 11; bit < (kLongDoubleIsLong ? 64 : 29); ++bit) {
      for (uint64_t offset : {0ull, 1ull, 12345ull}) {
        expect_close((uint64_t{1} << bit) + offset, frequency);
        expect_close((uint64_t{1} << bit) - 1 - offset % 1000, frequency);
      }
    }
    if (kLongDoubleIsLong) expect_close(UINT64_MAX, frequency);
  }
}

TEST(SinCos, TakesFrequenciesOfAnySize) {
  for (float frequency : {0x1p-149f, 1e-40f, 1e-30f, 1e-9f, 0.5f, 3.0f, 1e3f, 16777215.0f, 1e10f,
                          1e20f, std::numeric_limits<float>::max()}) {
    for (uint64_t position : {0, 1, 2, 3, 1000, 65535}) {
      expect_close(position, frequency);
      const SinCos plus = sincos_of(position, frequency), minus = sincos_of(position, -frequency);
      EXPECT_EQ(plus.sin, -minus.sin);
      EXPECT_EQ(plus.cos, minus.cos);
    }
  }
}

TEST(SinCos, OfNothingIsExactlyZeroAndOne) {
  for (float frequency : {0.0f, -0.0f, 1.0f}) {
    const SinCos result = sincos_of(0, frequency);
    EXPECT_EQ(result.sin, 0.0);
    EXPECT_EQ(result.cos, 1.0);
  }
}

TEST(SinCos, OfQuarterTurnsIsExact) {
  const double sin[] = {0, 1, 0, -1}, cos[] = {1, 0, -1, 0};
  for (uint64_t quarter = 0; quarter < 4; ++quarter) {
    const SinCos result = sincos_of_turns(quarter << 62);
    EXPECT_EQ(result.sin, sin[quarter]);
    EXPECT_EQ(result.cos, cos[quarter]);
  }
}

TEST(SinCos, OfWhatIsNotFiniteIsNan) {
  for (float frequency : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_TRUE(std::isnan(sincos_of(1, frequency).sin));
    EXPECT_TRUE(std::isnan(sincos_of(1, -frequency).cos));
  }
}

}  // namespace
}  // namespace oxbow
