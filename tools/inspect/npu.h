#pragma once

// What a file holds for NPUs, and what stays on the CPU.

#include <nlohmann/json.hpp>
#include <string>

#include "host/describe.h"

namespace oxbow::tools {

/// Tables for people.
std::string npu_text(const schema::ModelT& model);

/// The same for programs: docs/json.md tells what the keys mean.
nlohmann::json npu_json(const schema::ModelT& model);

}  // namespace oxbow::tools
