#pragma once

// Chains for LiteRT, which takes them to the NPUs of phones: see litert.cc.

#include <memory>
#include <string>

#include "converter/offload/offload.h"

namespace oxbow::convert {

std::unique_ptr<NpuCompiler> make_litert_compiler();
/// For one chip, by a program; see OffloadOptions.litert_tool.
std::unique_ptr<NpuCompiler> make_litert_chip_compiler(const std::string& tool);

}  // namespace oxbow::convert
