#include "converter/passes/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/math.h"

namespace oxbow::convert {
namespace {

/// Fractions of the scale at which nothing is cut off.
constexpr float kFirstPart = 0.55f, kPartStep = 0.05f;
constexpr int kParts = 11;

/// The numbers of a group, filled up with zeros.
using Numbers = std::array<float, kI4BlockColumns>;

struct Trial {
  F16 scale;
  Numbers codes;
  double error = std::numeric_limits<double>::infinity();
};

void round_codes(const Numbers& x, float scale, Numbers& codes) {
  const float inverse = 1.0f / scale;
  for (size_t i = 0; i < x.size(); ++i) {
    float code = x[i] * inverse;
    code = code > kMostI4 ? kMostI4 : code;
    code = code < kLeastI4 ? kLeastI4 : code;
    codes[i] = code + kRoundMagic - kRoundMagic;
  }
}

/// The scale that suits these codes best.
float best_scale(const Numbers& x, const Numbers& codes) {
  float products = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    products += x[i] * codes[i];
    squares += codes[i] * codes[i];
  }
  return squares > 0 ? products / squares : 0;
}

void consider(const Numbers& x, float wanted, Trial& best) {
  constexpr float kLargest = 65504;
  const F16 scale = to_f16(std::clamp(wanted, -kLargest, kLargest));
  const float value = to_f32(scale);
  if (value == 0) return;
  Trial trial;
  trial.scale = scale;
  round_codes(x, value, trial.codes);
  float error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float difference = value * trial.codes[i] - x[i];
    error += difference * difference;
  }
  trial.error = error;
  if (trial.error < best.error) best = trial;
}

/// What is a group already, whatever its largest code is: numbers that are products of a scale and codes.
void find_codes(const Numbers& x, float largest, Trial& best) {
  for (int code = 1; code < static_cast<int>(kMostI4); ++code) {
    const float scale = to_f32(to_f16(largest / static_cast<float>(code)));
    if (scale == 0 || !std::isfinite(1 / scale)) continue;
    const bool fits = std::all_of(x.begin(), x.end(), [&](float value) {
      return scale * std::nearbyint(value / scale) == value;
    });
    if (!fits) continue;
    return consider(x, scale, best);
  }
}

}  // namespace

I4Group round_to_i4(std::span<const float> values) {
  Numbers x = {};
  std::copy(values.begin(), values.end(), x.begin());
  float largest = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  Trial best;
  best.codes = {};
  // With either sign, since there is one more code below zero than above. What is exact already stays.
  consider(x, largest / kLeastI4, best);
  consider(x, largest / kMostI4, best);
  if (best.error > 0) find_codes(x, largest, best);
  for (const float whole : {largest / kLeastI4, -largest / kLeastI4}) {
    for (int part = 0; part < kParts && best.error > 0; ++part) {
      Numbers codes;
      const float scale = whole * (kFirstPart + kPartStep * static_cast<float>(part));
      if (scale == 0 || !std::isfinite(1 / scale)) continue;
      round_codes(x, scale, codes);
      consider(x, best_scale(x, codes), best);
    }
  }
  I4Group group;
  group.scale = best.scale;
  for (size_t i = 0; i < values.size(); ++i) group.codes[i] = static_cast<int8_t>(best.codes[i]);
  return group;
}

std::vector<float> ternary_rows(std::span<const float> values, size_t rows, size_t width) {
  std::vector<float> steps(rows);
  for (size_t row = 0; row < rows; ++row) {
    for (const float value : values.subspan(row * width, width)) {
      if (value == 0) continue;
      if (steps[row] != 0 && std::fabs(value) != steps[row]) return {};
      steps[row] = std::fabs(value);
    }
  }
  return steps;
}

}  // namespace oxbow::convert
