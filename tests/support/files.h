#pragma once

// Files of tests.

#include <cstddef>
#include <filesystem>
#include <vector>

#include "host/testing/temporary_directory.h"

namespace oxbow::testing {

std::vector<std::byte> read_bytes(const std::filesystem::path& path);
void write_bytes(const std::filesystem::path& path, const std::vector<std::byte>& bytes);

}  // namespace oxbow::testing
