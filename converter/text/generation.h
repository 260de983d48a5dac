#pragma once

// generation_config.json: how a model's makers would generate text with it.

#include <cstdint>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// Changes `generation` where the file at `path` says something. `vocabulary` is the number of tokens
/// the model gives. Returns notes about what was found and what is left out. Throws InputError.
std::vector<std::string> read_generation_config(const std::string& path, uint32_t vocabulary,
                                                schema::GenerationT& generation);

}  // namespace oxbow::convert
