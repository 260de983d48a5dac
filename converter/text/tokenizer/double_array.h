#pragma once

// Builds the double array that runtime/text/tables/trie.h walks.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace oxbow::convert {

/// The array for these strings and their numbers, which are below 2^31. Strings that are empty or
/// contain a zero byte cannot be in it and are left out. Empty when nothing is left.
std::vector<uint32_t> build_double_array(const std::map<std::string, uint32_t>& numbers);

}  // namespace oxbow::convert
