#pragma once

// Numbers as people read them.

#include <cstdint>
#include <string>

namespace oxbow {

/// "1.5 KiB", "96 B".
std::string bytes_text(uint64_t bytes);
/// "1,234,567".
std::string grouped_text(uint64_t number);

}  // namespace oxbow
