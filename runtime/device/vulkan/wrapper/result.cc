#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {

Hooks& hooks() {
  static Hooks the_hooks;
  return the_hooks;
}

Counters& counters() {
  static Counters the_counters;
  return the_counters;
}

VkResult hooked_result() {
  ++counters().calls;
  uint32_t left = hooks().fail_at.load();
  while (left != 0) {
    if (hooks().fail_at.compare_exchange_weak(left, left - 1)) {
      return left == 1 ? static_cast<VkResult>(hooks().fail_with) : VK_SUCCESS;
    }
  }
  return VK_SUCCESS;
}

Status failed(VkResult result, const char* what, Error* error) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return fail(error, Status::kOutOfMemory, "Vulkan: no memory for %s", what);
    case VK_ERROR_DEVICE_LOST:
      return fail(error, Status::kDeviceLost,
                  "Vulkan: the device was lost in %s: destroy its sessions and make new ones",
                  what);
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return fail(error, Status::kNoDevice,
                  "Vulkan: no usable device, %s failed with %d: use the backend cpu", what,
                  static_cast<int>(result));
    default:
      return fail(error, Status::kInternal, "Vulkan: %s failed with %d", what,
                  static_cast<int>(result));
  }
}

}  // namespace oxbow::vulkan
