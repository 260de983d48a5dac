#pragma once

// When a model uses what is in runtime/model/features.inc.

#include <span>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

struct Feature {
  const char* name;
  /// Fields of the schema that it is about, "Table.field", separated by spaces.
  const char* fields;
  bool (*is_used)(const schema::ModelT& model);
};

/// In the order of the list.
std::span<const Feature> features();

/// Names of those that the model uses.
std::vector<std::string> used_features(const schema::ModelT& model);

}  // namespace oxbow::convert
