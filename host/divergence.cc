#include "host/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace oxbow {

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

std::string estimate_text(const Estimate& estimate, const char* format, double factor) {
  char value[48], error[48];
  std::snprintf(value, sizeof(value), format, estimate.value * factor);
  std::snprintf(error, sizeof(error), format, estimate.error * factor);
  // A sign belongs to the value only.
  return std::string(value) + " ± " + (error[0] == '+' ? error + 1 : error);
}

Estimate Divergence::Sum::estimate() const {
  if (count < 2) return {mean(), 0};
  const double variance = std::max(0.0, squares / count - mean() * mean()) * count / (count - 1);
  return {mean(), std::sqrt(variance / count)};
}

void Divergence::add(std::span<const float> judge, std::span<const float> other, int32_t next) {
  double ab = 0, aa = 0, bb = 0, kl = 0;
  const double zj = log_sum_exp(judge), zo = log_sum_exp(other);
  for (size_t i = 0; i < judge.size(); ++i) {
    const double a = judge[i], b = other[i];
    ab += a * b;
    aa += a * a;
    bb += b * b;
    // Far from the top there is nothing to add, and infinities would make NaN of it.
    if (a - zj > -80) kl += std::exp(a - zj) * ((a - zj) - (b - zo));
    largest_ = std::max(largest_, std::fabs(a - b));
  }
  cosine_.add(aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : (aa == bb ? 1.0 : 0.0));
  kl_.add(kl);
  const auto top = std::max_element(judge.begin(), judge.end()) - judge.begin();
  const auto other_top = std::max_element(other.begin(), other.end()) - other.begin();
  top_.add(other_top == top ? 1 : 0);
  if (other_top != top) {
    const double lead =
        double{judge[static_cast<size_t>(top)]} - judge[static_cast<size_t>(other_top)];
    lead_.add(lead);
    largest_lead_ = std::max(largest_lead_, lead);
  }
  const auto token = next >= 0 ? static_cast<size_t>(next) : static_cast<size_t>(top);
  const double change = std::exp(other[token] - zo) - std::exp(judge[token] - zj);
  delta_p_.add(change * change);
  if (next < 0) return;
  judge_surprise_.add(zj - judge[token]);
  surprise_.add(zo - other[token]);
  surprise_change_.add((zo - other[token]) - (zj - judge[token]));
}

Estimate Divergence::kl() const {
  const Estimate mean = kl_.estimate();
  // Rounding may leave a tiny negative number where there is no difference.
  return {std::max(0.0, mean.value), mean.error};
}

Estimate Divergence::rms_delta_p() const {
  const Estimate mean = delta_p_.estimate();
  const double root = std::sqrt(mean.value);
  return {root, root > 0 ? mean.error / (2 * root) : 0};
}

double Divergence::judge_perplexity() const { return std::exp(judge_surprise_.mean()); }

double Divergence::perplexity() const { return std::exp(surprise_.mean()); }

Estimate Divergence::perplexity_change() const {
  const Estimate change = surprise_change_.estimate();
  return {std::expm1(change.value), std::exp(change.value) * change.error};
}

}  // namespace oxbow
