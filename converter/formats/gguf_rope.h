#pragma once

// How a GGUF file of a Llama describes rotary positions, as keys of a config.json.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "converter/formats/gguf.h"
#include "converter/formats/gguf_keys.h"

namespace oxbow::convert {

/// Whether a tensor is part of what rope_config() reads.
bool is_rope_tensor(std::string_view name);

/// rope_theta, and rope_scaling when there is any. Throws InputError for what has no counterpart.
nlohmann::json rope_config(const Gguf& gguf, const GgufKeys& keys, uint32_t head_width);

}  // namespace oxbow::convert
