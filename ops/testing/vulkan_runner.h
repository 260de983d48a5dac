#pragma once

// The Vulkan half of OpRunner: runs the step once more on a Vulkan device, from the values the CPU began
// with, and compares what comes of it: tensors, symbols, rings and the status. Bytes behind every tensor
// must stay as they are.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/testing/op_runner.h"

namespace oxbow::testing {

class VulkanShadow {
 public:
  /// Takes the values as they are now. Null when the op has no shader for this step, or no device is to
  /// be used: OXB_TEST_VULKAN=0.
  static std::unique_ptr<VulkanShadow> before(OpRunner& runner, BindContext& context);
  virtual ~VulkanShadow() = default;
  /// After the CPU's run, which gave `expected`.
  virtual void compare(Status expected) = 0;
};

/// While one lives nothing is run on the device: for data that a session refuses before any step, and for
/// which a shader, which cannot fail, is no match.
class WithoutVulkan {
 public:
  WithoutVulkan();
  ~WithoutVulkan();
  WithoutVulkan(const WithoutVulkan&) = delete;
};

/// How many steps ran on the device so far.
size_t vulkan_shadow_runs();

}  // namespace oxbow::testing
