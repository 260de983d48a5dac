#pragma once

// Arm's Ethos-U, by Vela: see ethosu.cc.

#include <memory>
#include <string>

#include "converter/offload/offload.h"

namespace oxbow::convert {

std::unique_ptr<NpuCompiler> make_ethosu_compiler(const std::string& target,
                                                  const std::string& vela);

}  // namespace oxbow::convert
