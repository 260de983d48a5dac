#pragma once

// Reads and writes .npy, the file of one array that NumPy writes: a magic word, the length of a header, the header as a
// Python dictionary, the numbers. Nothing in a file that is read is believed.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "host/tensor_file.h"

namespace oxbow {

bool looks_like_npy(std::span<const std::byte> file);

/// The array in `file`, all of it; `path` is for messages. Throws InputError.
StoredTensor read_npy(const std::string& path, std::span<const std::byte> file);

/// Rows of equal lengths as a file of version 1.
std::string npy_bytes(const std::vector<std::vector<float>>& rows);

}  // namespace oxbow
