#pragma once

// OXB_TEST_VULKAN=0 leaves the device out of all tests, for machines without one. With OXB_TEST_VULKAN=some a test that
// runs an op very often does so on the device only now and then: a device in software compiles a shader for each shape.

#include <cstdlib>
#include <cstring>

namespace oxbow::testing {

inline bool vulkan_is(const char* value) {
  const char* wanted = std::getenv("OXB_TEST_VULKAN");
  return wanted != nullptr && std::strcmp(wanted, value) == 0;
}

inline bool vulkan_wanted() { return !vulkan_is("0"); }

}  // namespace oxbow::testing
