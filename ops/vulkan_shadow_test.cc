// That op tests do run on the Vulkan device: without this, a device that is not there would pass unseen.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "ops/add/add.h"
#include "ops/testing/vulkan_runner.h"

namespace oxbow::testing {
namespace {

TEST(VulkanShadow, StepsWithAShaderRunOnTheDevice) {
  const char* wanted = std::getenv("OXB_TEST_VULKAN");
  if (!is_built_in(Backend::kVulkan) || (wanted != nullptr && std::strcmp(wanted, "0") == 0)) {
    GTEST_SKIP() << "no Vulkan in this build, or not to be tested";
  }
  TestTensor a = f32_tensor("a", 3, 100), b = f32_tensor("b", 3, 100), y = f32_tensor("y", 3, 100);
  fill_uniform(a, 1);
  fill_uniform(b, 2);
  OpRunner op(bind_add);
  op.inputs = {&a, &b};
  op.outputs = {&y};
  const size_t before = vulkan_shadow_runs();
  ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  EXPECT_EQ(vulkan_shadow_runs(), before + 1);
}

}  // namespace
}  // namespace oxbow::testing
