#pragma once

// Arm's Ethos-U, by Vela: see ethosu.cc.

#include <memory>
#include <string>

#include "converter/offload/offload.h"

namespace oxbow::convert {

/// Null: no chip of this name.
std::unique_ptr<NpuCompiler> make_ethosu_compiler(const std::string& target,
                                                  const OffloadOptions& options);

/// "ethos-u55-32, ...": all there are.
std::string ethosu_targets();

}  // namespace oxbow::convert
