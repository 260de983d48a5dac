#pragma once

// Chains for LiteRT, which takes them to the NPUs of phones: see litert.cc.

#include <memory>

#include "converter/offload/offload.h"

namespace oxbow::convert {

std::unique_ptr<NpuCompiler> make_litert_compiler();

}  // namespace oxbow::convert
