#pragma once

// The keys of a GGUF file as a config.json of Hugging Face's library.

#include <nlohmann/json.hpp>
#include <string>

#include "converter/formats/gguf.h"
#include "converter/formats/gguf_names.h"

namespace oxbow::convert {

/// Sizes that both the configuration and the layout of tensors depend on.
struct GgufSizes {
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
};

struct GgufConfig {
  const GgufNames* names = nullptr;
  GgufSizes sizes;
  nlohmann::json json;
};

/// Throws InputError for an architecture that is not known, and for keys that may change the results and have no
/// counterpart.
GgufConfig read_gguf_config(const Gguf& gguf);

/// A tensor of the file; throws InputError when it is missing.
const StoredTensor& gguf_tensor(const Gguf& gguf, const std::string& name);

}  // namespace oxbow::convert
