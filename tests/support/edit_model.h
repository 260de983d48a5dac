#pragma once

// Model files with something the converter would not write, such as a tokenizer for a test.

#include <functional>
#include <string>

#include "schema/model_generated.h"

namespace oxbow::testing {

/// Writes the model at `from` to `to` with a changed graph, which the runtime must accept.
void edit_model(const std::string& from, const std::string& to,
                const std::function<void(schema::ModelT&)>& edit);

}  // namespace oxbow::testing
