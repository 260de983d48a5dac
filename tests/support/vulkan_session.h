#pragma once

// What tests of sessions on a Vulkan device share: hooks that are put back, and runs to compare.

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "ops/testing/vulkan_wanted.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/device/vulkan/wrapper/hooks.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {

inline oxb_session_options vulkan_options() {
  oxb_session_options options = oxb::SessionOptions();
  options.backend = OXB_BACKEND_VULKAN;
  return options;
}

/// Validation is on; puts the hooks back, and holds every test to: no error, nothing left.
class VulkanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!vulkan_wanted()) GTEST_SKIP() << "OXB_TEST_VULKAN=0";
    vulkan::hooks().validation = true;
    vulkan::counters().errors = 0;
  }
  void TearDown() override {
    vulkan::Hooks& hooks = vulkan::hooks();
    hooks.staged = hooks.no_int_dot = hooks.no_storage8 = hooks.no_device = false;
    hooks.library = nullptr;
    hooks.simulated = nullptr;
    hooks.spoiled_shader = nullptr;
    hooks.spoil_plain = false;
    hooks.binding_alignment = 0;
    hooks.max_binding_bytes = 0;
    hooks.max_allocation = 0;
    hooks.fail_at = 0;
    EXPECT_EQ(vulkan::counters().errors.load(), 0u) << "validation found errors";
    EXPECT_EQ(vulkan::counters().objects.load(), 0) << "objects are left";
    EXPECT_EQ(vulkan::counters().bytes.load(), 0) << "memory is left";
  }
};

inline const std::vector<int32_t> kTokens = {1, 0, 2, 3, 4};

/// Logits of runs of different lengths, enough to fill the memories; a reset and a restore on the way.
inline std::vector<float> logits_of(TinyModel& bytes, const oxb_session_options& options) {
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  EXPECT_TRUE(model.ok()) << model.status().text();
  auto session = oxb::Session::create(*model, options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  if (!session.ok()) return {};
  std::vector<float> all;
  std::vector<std::byte> saved(session->state_bytes());
  for (size_t i = 0; i < 40; ++i) {
    const size_t count = 1 + i % 5, rows = i % (count + 1);
    std::vector<float> logits(rows * model->info().vocabulary);
    const oxb::Status status = session->run(std::span(kTokens).first(count), logits);
    EXPECT_TRUE(status.ok()) << status.text();
    all.insert(all.end(), logits.begin(), logits.end());
    if (i == 12) {
      EXPECT_TRUE(session->save(saved).ok());
    }
    if (i == 20) session->reset();
    if (i == 30) {
      EXPECT_TRUE(session->load(saved).ok());
    }
  }
  return all;
}

}  // namespace oxbow::testing
