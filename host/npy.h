#pragma once

// Reads .npy, the file of one array that NumPy writes: a magic word, the length of a header, the header as a Python
// dictionary, the numbers. Nothing in it is believed.

#include <cstddef>
#include <span>
#include <string>

#include "host/tensor_file.h"

namespace oxbow {

bool looks_like_npy(std::span<const std::byte> file);

/// The array in `file`, all of it; `path` is for messages. Throws InputError.
StoredTensor read_npy(const std::string& path, std::span<const std::byte> file);

}  // namespace oxbow
