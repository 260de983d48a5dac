#pragma once

// The connection to Vulkan, with a messenger that counts what validation finds.

#include "runtime/device/vulkan/wrapper/api.h"

namespace oxbow::vulkan {

struct Instance {
  Api api;
  VkInstance handle = VK_NULL_HANDLE;
  /// What of Vulkan it offers.
  uint32_t version = 0;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;

  Status open(Error* error);
  /// Also after an open that failed half-way.
  void close();
};

}  // namespace oxbow::vulkan
