#pragma once

// The model_type of a checkpoint whose config.json does not say it, as those of old libraries do not.

#include <functional>
#include <string>

namespace oxbow::convert {

/// By the tensors there are; empty when they are those of no model that is known by them.
std::string model_type_of(const std::function<bool(const std::string&)>& has_tensor);

}  // namespace oxbow::convert
