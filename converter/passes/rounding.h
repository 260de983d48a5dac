#pragma once

// How floats become the codes of formats with few bits.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/weight_blocks.h"

namespace oxbow::convert {

inline constexpr float kLeastI4 = -8, kMostI4 = 7, kMostI4Min = 15;

/// At most 32 numbers: scale * codes, with codes from -8 to 7.
struct I4Group {
  F16 scale;
  std::array<int8_t, kI4BlockColumns> codes = {};
};

/// At most 32 numbers: scale * codes + min, with codes from 0 to 15.
struct I4MinGroup {
  F16 scale, min;
  std::array<int8_t, kI4BlockColumns> codes = {};
};

inline float value_of(const I4Group& group, size_t i) {
  return to_f32(group.scale) * group.codes[i];
}
/// As Q4_1 is read: the product is exact, the sum is rounded.
inline float value_of(const I4MinGroup& group, size_t i) {
  return to_f32(group.scale) * group.codes[i] + to_f32(group.min);
}

/// The scale with the least sum of squared differences of many that are tried. What is a group already, as in Q4_0 or in
/// what others have quantised, is kept as it is.
I4Group round_to_i4(std::span<const float> values);

/// The same with a min. What lies in such a group is kept: to the bit if its scale and min have 16 bits.
I4MinGroup round_to_i4_min(std::span<const float> values);

/// Whether all numbers are next to evenly spaced ones, of which 16 span them; rounding has no say in their codes then. To the
/// bit: `exact` stays as it is, else it becomes false.
bool lies_in_i4(std::span<const float> values, bool* exact);
bool lies_in_i4_min(std::span<const float> values, bool* exact);

/// One magnitude for each row if every row has just -a, 0 and a; otherwise nothing.
std::vector<float> ternary_rows(std::span<const float> values, size_t rows, size_t width);

}  // namespace oxbow::convert
