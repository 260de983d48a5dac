#pragma once

// What a file holds for NPUs, and what stays on the CPU.

#include <string>

#include "host/describe.h"

namespace oxbow::tools {

/// Tables for people.
std::string npu_text(const schema::ModelT& model);

}  // namespace oxbow::tools
