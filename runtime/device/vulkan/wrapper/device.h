#pragma once

// The device that computes, chosen among those of the machine: a real one before a simulated one.

#include "runtime/device/vulkan/wrapper/api.h"
#include "runtime/device/vulkan/wrapper/features.h"
#include "runtime/device/vulkan/wrapper/instance.h"

namespace oxbow::vulkan {

/// Storage buffers that any shader of ours has: the values of a dispatch and the tensors.
inline constexpr uint32_t kMaxBindings = 16;

struct Device {
  Instance instance;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  VulkanFeatures features;
  /// Bytes of one allocation.
  uint64_t max_allocation = 0;
  /// Nanoseconds of a tick; 0: the queue has no timestamps.
  double timestamp_period = 0.0;
  /// The bits of a timestamp that count.
  uint64_t timestamp_mask = 0;

  Status open(Error* error);
  void close();

  const Api& api() const { return instance.api; }
};

}  // namespace oxbow::vulkan
