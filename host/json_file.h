#pragma once

// JSON from outside. What it becomes in memory has many times its size, and what works on it goes down
// one call for each level; so both are bounded before anything is made of the text.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace oxbow {

/// Throws InputError when `text` has a zero byte, is too deep or has too many values to be parsed; `where` begins the
/// message.
void check_json_size(const std::string& where, std::string_view text);

/// Throws InputError.
nlohmann::json parse_json(const std::string& path, std::string_view text);

/// The JSON of a file of at most `limit` bytes. Throws InputError.
nlohmann::json read_json(const std::string& path, size_t limit = size_t{64} << 20);
/// The same of a file that must have an object.
nlohmann::json read_json_object(const std::string& path);

}  // namespace oxbow
