// Shaders that are wrong on a device: found out when a session is made, replaced, and told.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/device/vulkan/wrapper/context.h"
#include "tests/support/vulkan_session.h"

namespace oxbow::testing {
namespace {

class VulkanProofs : public VulkanTest {
 protected:
  /// A model whose warnings are kept in `log`.
  oxb::Expected<oxb::Model> open(TinyModel& bytes) {
    oxb_open_options options = oxb::OpenOptions();
    options.log = [](void* context, oxb_log_level level, const char* text) {
      if (level != OXB_LOG_WARNING) return;
      static_cast<std::string*>(context)->append(text).append("\n");
    };
    options.log_context = &log;
    return oxb::Model::open(std::span<const std::byte>(bytes.bytes()), options);
  }
  size_t steps_on_the_cpu(const oxb::Session& session) {
    size_t count = 0;
    for (size_t i = 0; session.step_provider(i) != nullptr; ++i) {
      count += std::strcmp(session.step_provider(i), "vulkan") != 0;
    }
    return count;
  }
  std::string log;
};

TEST_F(VulkanProofs, RightShadersAreUsedAndNothingIsSaid) {
  TinyModel bytes = tiny_model("int8");
  const auto model = open(bytes);
  const uint64_t before = vulkan::counters().proofs;
  const auto session = oxb::Session::create(*model, vulkan_options());
  ASSERT_TRUE(session.ok()) << session.status().text();
  EXPECT_GE(vulkan::counters().proofs, before + 6);
  EXPECT_EQ(steps_on_the_cpu(*session), 0u);
  EXPECT_EQ(log, "");
}

TEST_F(VulkanProofs, AWrongFormIsReplacedByThePlainOne) {
  for (const char* shader : {"linear_i8_i8_row", "attention_i8"}) {
    SCOPED_TRACE(shader);
    vulkan::hooks().spoiled_shader = shader;
    log.clear();
    TinyModel bytes = tiny_model("int8");
    const auto model = open(bytes);
    {
      const auto session = oxb::Session::create(*model, vulkan_options());
      ASSERT_TRUE(session.ok()) << session.status().text();
      EXPECT_EQ(steps_on_the_cpu(*session), 0u);
    }
    EXPECT_NE(log.find(std::string("packed dot products of the Vulkan shader ") + shader),
              std::string::npos)
        << log;
    EXPECT_EQ(logits_of(bytes, vulkan_options()), logits_of(bytes, oxb::SessionOptions()));
  }
}

TEST_F(VulkanProofs, AShaderThatIsWrongInEveryFormLeavesItsStepsToTheCpu) {
  for (const char* shader : {"linear_i8_i8_row", "attention_i8", "layer_norm"}) {
    SCOPED_TRACE(shader);
    vulkan::hooks().spoiled_shader = shader;
    vulkan::hooks().spoil_plain = true;
    log.clear();
    TinyModel bytes = tiny_model("int8");
    const auto model = open(bytes);
    {
      const auto session = oxb::Session::create(*model, vulkan_options());
      ASSERT_TRUE(session.ok()) << session.status().text();
      EXPECT_GE(steps_on_the_cpu(*session), 1u);
    }
    EXPECT_NE(log.find(std::string("the Vulkan shader ") + shader + " gives wrong numbers"),
              std::string::npos)
        << log;
    EXPECT_EQ(logits_of(bytes, vulkan_options()), logits_of(bytes, oxb::SessionOptions()));
  }
}

TEST_F(VulkanProofs, VerdictsAreStoredWithThePipelines) {
  TinyModel bytes = tiny_model("int8");
  const auto model = open(bytes);
  vulkan::hooks().spoiled_shader = "linear_i8_i8_row";
  std::vector<std::byte> cache;
  {
    const auto session = oxb::Session::create(*model, vulkan_options());
    ASSERT_TRUE(session.ok()) << session.status().text();
    size_t size = 0;
    ASSERT_EQ(oxb_session_pipeline_cache(session->get(), nullptr, 0, &size, nullptr), OXB_OK);
    cache.resize(size);
    ASSERT_EQ(oxb_session_pipeline_cache(session->get(), cache.data(), size, &size, nullptr),
              OXB_OK);
  }
  // The next process sees the verdict, not the device.
  vulkan::hooks().spoiled_shader = nullptr;
  log.clear();
  oxb_session_options options = vulkan_options();
  options.pipeline_cache = cache.data();
  options.pipeline_cache_bytes = cache.size();
  const uint64_t before = vulkan::counters().proofs;
  const auto session = oxb::Session::create(*model, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  EXPECT_EQ(vulkan::counters().proofs, before);
  EXPECT_NE(log.find("linear_i8_i8_row are wrong on this device"), std::string::npos) << log;
}

}  // namespace
}  // namespace oxbow::testing
