#pragma once

// A buffer with memory of its own: one allocation.

#include <cstddef>

#include "runtime/device/vulkan/wrapper/device.h"

namespace oxbow::vulkan {

enum class Place : uint8_t {
  /// What the device reaches fastest.
  kDevice,
  /// Mapped, coherent, and as near the device as can be; rather cached by the host.
  kShared,
};

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  /// kShared only.
  std::byte* mapped = nullptr;
  /// What was asked for, and what it takes.
  size_t bytes = 0;
  size_t taken = 0;

  /// Mapped memory is zeroed. `what` is for messages.
  Status open(const Device& device, Place place, size_t wanted, const char* what, Error* error);
  /// Only the buffer, to learn in `taken` what open would take, and of which type of memory. Fails when the
  /// device has not as much.
  Status measure(const Device& device, Place place, size_t wanted, const char* what, uint32_t* type,
                 Error* error);
  void close(const Device& device);
};

/// Whether some memory is both near the device and mapped, as on phones.
bool has_unified_memory(const Device& device);

}  // namespace oxbow::vulkan
