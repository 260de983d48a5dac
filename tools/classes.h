#pragma once

// Logits as probabilities of classes.

#include <span>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"

namespace oxbow::tools {

/// softmax(logits)
std::vector<double> probabilities(std::span<const float> logits);
/// The indices of the `count` largest, the largest first; of equal ones the first first.
std::vector<size_t> best_first(std::span<const double> values, size_t count);
/// The name of a class, or its number when the file has none.
std::string class_name(const oxb::Model& model, size_t index);

}  // namespace oxbow::tools
