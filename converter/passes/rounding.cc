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

/// Numbers that are products have codes as well, of any spacing.
constexpr float kCodeTolerance = 1.0f / 32;

struct MinTrial {
  I4MinGroup group;
  double error = std::numeric_limits<double>::infinity();
};

void consider(std::span<const float> values, float wanted_scale, float wanted_min, MinTrial& best) {
  MinTrial trial;
  trial.group.scale = to_f16(wanted_scale);
  trial.group.min = to_f16(wanted_min);
  const float scale = to_f32(trial.group.scale), min = to_f32(trial.group.min);
  if (!std::isfinite(scale) || !std::isfinite(min)) return;
  trial.error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const float code = scale > 0 ? std::nearbyint((values[i] - min) / scale) : 0;
    trial.group.codes[i] = static_cast<int8_t>(std::clamp(code, 0.0f, kMostI4Min));
    const double difference = double{value_of(trial.group, i)} - values[i];
    trial.error += difference * difference;
  }
  if (trial.error < best.error) best = trial;
}

struct Range {
  float least, most;
};
Range range_of(std::span<const float> values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, *most};
}

/// Evenly spaced numbers, whatever their least and largest codes are. The first that are kept to the bit, or the nearest.
MinTrial find_min_codes(std::span<const float> values) {
  MinTrial best;
  const Range range = range_of(values);
  if (range.least == range.most) {
    consider(values, 0, range.least, best);
    return best;
  }
  constexpr int kMostSteps = static_cast<int>(kMostI4Min);
  for (int steps = 1; steps <= kMostSteps && best.error > 0; ++steps) {
    const float step = (range.most - range.least) / static_cast<float>(steps);
    const bool fits = std::all_of(values.begin(), values.end(), [&](float value) {
      const float code = (value - range.least) / step;
      return std::fabs(code - std::nearbyint(code)) <= kCodeTolerance;
    });
    const float scale = to_f32(to_f16(step));
    for (int first = 0; fits && first <= kMostSteps - steps && best.error > 0; ++first) {
      consider(values, scale, range.least - static_cast<float>(first) * scale, best);
    }
  }
  return best;
}

template <typename Group>
bool lies_in(std::span<const float> values, const Group& group, bool* exact) {
  // All the same: a min alone.
  const float scale = std::fabs(to_f32(group.scale));
  const float most = (scale != 0 ? scale : std::fabs(values[0]) / kMostI4Min) * kCodeTolerance;
  for (size_t i = 0; i < values.size(); ++i) {
    const float difference = std::fabs(value_of(group, i) - values[i]);
    if (!(difference <= most)) return false;
    *exact = *exact && difference == 0;
  }
  return true;
}

}  // namespace

bool lies_in_i4(std::span<const float> values, bool* exact) {
  return lies_in(values, round_to_i4(values), exact);
}

bool lies_in_i4_min(std::span<const float> values, bool* exact) {
  const MinTrial found = find_min_codes(values);
  return std::isfinite(found.error) && lies_in(values, found.group, exact);
}

I4MinGroup round_to_i4_min(std::span<const float> values) {
  bool exact = true;
  MinTrial best = find_min_codes(values);
  if (std::isfinite(best.error) && lies_in(values, best.group, &exact)) return best.group;
  const Range range = range_of(values);
  const float middle = range.least / 2 + range.most / 2, half = range.most / 2 - range.least / 2;
  for (int part = 0; part < kParts; ++part) {
    const float cut = half * (kFirstPart + kPartStep * static_cast<float>(part)) / 1.05f;
    MinTrial trial;
    consider(values, 2 * cut / kMostI4Min, middle - cut, trial);
    if (!std::isfinite(trial.error)) continue;
    if (trial.error < best.error) best = trial;
    // The scale and min that suit these codes best.
    double codes = 0, squares = 0, sum = 0, products = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double code = trial.group.codes[i];
      codes += code;
      squares += code * code;
      sum += values[i];
      products += code * values[i];
    }
    const auto count = static_cast<double>(values.size());
    const double spread = count * squares - codes * codes;
    if (spread <= 0) continue;
    const double scale = (count * products - codes * sum) / spread;
    consider(values, static_cast<float>(scale), static_cast<float>((sum - scale * codes) / count),
             best);
  }
  return best.group;
}

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
