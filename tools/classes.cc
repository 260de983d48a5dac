#include "tools/classes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/errors.h"

namespace oxbow::tools {

std::vector<double> probabilities(std::span<const float> logits) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> shares;
  double sum = 0.0;
  for (const float logit : logits) {
    sum += shares.emplace_back(std::exp(static_cast<double>(logit) - top));
  }
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<size_t> best_first(std::span<const double> values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

std::string class_name(const oxb::Model& model, size_t index) {
  const char* label = oxb_model_label(model.get(), index);
  return label == nullptr ? std::to_string(index) : printable(label);
}

}  // namespace oxbow::tools
