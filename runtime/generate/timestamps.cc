#include "runtime/generate/timestamps.h"

#include <algorithm>
#include <limits>

#include "runtime/base/math.h"

namespace oxbow {
namespace {

void forbid_all(std::span<float> logarithms) {
  std::fill(logarithms.begin(), logarithms.end(), -std::numeric_limits<float>::infinity());
}

/// Logarithm of the sum of probabilities.
float log_sum(std::span<const float> logarithms, float top) {
  return top + log_f32(sum_f32(logarithms.size(),
                               [&](size_t i) { return exp_f32(logarithms[i] - top); }));
}

float greatest(std::span<const float> logarithms) {
  return max_f32(logarithms.size(), -std::numeric_limits<float>::infinity(),
                 [&](size_t i) { return logarithms[i]; });
}

}  // namespace

bool TimestampRules::hold(std::span<const int32_t> prompt) const {
  return first >= 0 && std::find(prompt.begin(), prompt.end(), none) == prompt.end();
}

void TextTimes::add(const TimestampRules& rules, int32_t token) {
  before_ = empty_ || last_;
  last_ = token >= rules.first;
  if (last_) time_ = token;
  empty_ = false;
}

void TextTimes::forbid(const TimestampRules& rules, std::span<float> logarithms) const {
  const size_t first = static_cast<size_t>(rules.first);
  if (first >= logarithms.size()) return;
  const std::span<float> words = logarithms.first(first), times = logarithms.subspan(first);
  if (rules.none >= 0 && static_cast<size_t>(rules.none) < logarithms.size()) {
    forbid_all(logarithms.subspan(static_cast<size_t>(rules.none), 1));
  }
  if (last_ && before_) {
    forbid_all(times);
  } else if (last_) {
    // Only the end of the text, or what stands behind it.
    forbid_all(
        words.first(std::min(words.size(), static_cast<size_t>(std::max(rules.end_token, 0)))));
  }
  if (time_ >= 0) {
    const size_t earlier = static_cast<size_t>(time_ - rules.first) + (last_ && !before_ ? 0 : 1);
    forbid_all(times.first(std::min(times.size(), earlier)));
  }
  if (empty_) {
    forbid_all(words);
    if (rules.last_initial < times.size()) forbid_all(times.subspan(rules.last_initial + 1));
  }
  const float top = greatest(times);
  if (top > -std::numeric_limits<float>::infinity() && log_sum(times, top) > greatest(words)) {
    forbid_all(words);
  }
}

}  // namespace oxbow
