#pragma once

// OXB_TEST_VULKAN=0 leaves the device out of all tests, for machines without one.

#include <cstdlib>
#include <cstring>

namespace oxbow::testing {

inline bool vulkan_wanted() {
  const char* wanted = std::getenv("OXB_TEST_VULKAN");
  return wanted == nullptr || std::strcmp(wanted, "0") != 0;
}

}  // namespace oxbow::testing
