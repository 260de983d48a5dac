#pragma once

// How a GGUF file of a Llama describes rotary positions, as keys of a config.json.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "converter/formats/gguf.h"
#include "converter/formats/gguf_keys.h"

namespace oxbow::convert {

/// rope_theta, and rope_scaling when there is any. Throws InputError for what has no counterpart.
nlohmann::json rope_config(const Gguf& gguf, const GgufKeys& keys, uint32_t head_width);

}  // namespace oxbow::convert
