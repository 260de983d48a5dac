#pragma once

// What a file holds for NPUs, and what stays on the CPU.

#include <string>

#include "schema/model_generated.h"

namespace oxbow::tools {

/// Tables for people.
std::string npu_text(const schema::ModelT& model);

}  // namespace oxbow::tools
