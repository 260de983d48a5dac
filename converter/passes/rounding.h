#pragma once

// How floats become the codes of formats with few bits.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/weight_blocks.h"

namespace oxbow::convert {

inline constexpr float kLeastI4 = -8, kMostI4 = 7;

/// At most 32 numbers: scale * codes, with codes from -8 to 7.
struct I4Group {
  F16 scale;
  std::array<int8_t, kI4BlockColumns> codes = {};
};

/// The scale with the least sum of squared differences of many that are tried. What is a group already, as in Q4_0 or in
/// what others have quantised, is kept as it is.
I4Group round_to_i4(std::span<const float> values);

/// One magnitude for each row if every row has just -a, 0 and a; otherwise nothing.
std::vector<float> ternary_rows(std::span<const float> values, size_t rows, size_t width);

}  // namespace oxbow::convert
