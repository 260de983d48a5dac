#pragma once

// Chooses the reader of a tensor file by its content.

#include <memory>
#include <string>

#include "host/tensor_file.h"

namespace oxbow::convert {

/// Throws InputError for what is no tensor file of a known format. `key` says which dictionary of a
/// nested checkpoint holds the tensors, e.g. "model" or "ema.model"; empty: the only one that does.
std::unique_ptr<TensorFile> open_tensor_file(const std::string& path, const std::string& key = "");

}  // namespace oxbow::convert
