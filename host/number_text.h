#pragma once

// Numbers as people read them.

#include <cstdint>
#include <string>

namespace oxbow {

/// "1.5 KiB", "96 B".
std::string bytes_text(uint64_t bytes);
/// "1.5 KiB (1,536 bytes)"; below 1 KiB "96 bytes".
std::string size_text(uint64_t bytes);
/// "1 token", "2,000 tokens".
std::string count_text(uint64_t count, const char* one);
/// "0.5", "1e-05".
std::string number_text(double value);
/// "1,234,567".
std::string grouped_text(uint64_t number);

}  // namespace oxbow
