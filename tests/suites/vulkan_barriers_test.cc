// Which dispatches wait for each other: those that share bytes which one of them writes.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/device/vulkan/vulkan_op.h"
#include "runtime/device/vulkan/wrapper/buffer.h"
#include "runtime/device/vulkan/wrapper/hazards.h"
#include "runtime/device/vulkan/wrapper/spirv.h"
#include "tests/support/vulkan_session.h"

namespace oxbow {
OXB_SHADER(add);
OXB_SHADER(merge_rows);
OXB_SHADER(scan);
OXB_SHADER(linear_i8_i8_row);
}  // namespace oxbow

namespace oxbow::testing {
namespace {

uint32_t bits(std::initializer_list<uint32_t> bindings) {
  uint32_t mask = 0;
  for (const uint32_t binding : bindings) mask |= 1u << binding;
  return mask;
}

TEST(VulkanSpirv, WhatAShaderWritesIsReadFromItsCode) {
  EXPECT_EQ(vulkan::written_bindings(shader_add.code), bits({3}));
  EXPECT_EQ(vulkan::written_bindings(shader_linear_i8_i8_row.code), bits({3}));
  EXPECT_EQ(vulkan::written_bindings(shader_linear_i8_i8_row.int_dot_code), bits({3}));
  // And the values of its dispatch.
  EXPECT_EQ(vulkan::written_bindings(shader_merge_rows.code), bits({0, 5}));
  EXPECT_EQ(vulkan::written_bindings(shader_scan.code) & bits({0, 1, 2, 3}), bits({1, 2, 3}));
}

TEST(VulkanSpirv, DamagedCodeMayWriteEverywhere) {
  std::vector<uint32_t> code(shader_add.code.begin(), shader_add.code.end());
  code[5] = 0;
  EXPECT_EQ(vulkan::written_bindings(code), UINT32_MAX);
  code[5] = 0xffff0000u;
  EXPECT_EQ(vulkan::written_bindings(code), UINT32_MAX);
}

TEST(VulkanHazards, ReadersDoNotWaitForReadersAndAllWaitForWriters) {
  const vulkan::Buffer a, b;
  vulkan::Hazards hazards;
  ASSERT_TRUE(hazards.add({&a, 64, 128, false}));
  EXPECT_FALSE(hazards.meets({&a, 64, 128, false}));
  EXPECT_TRUE(hazards.meets({&a, 64, 128, true})) << "still read";
  EXPECT_TRUE(hazards.meets({&a, 127, 129, true}));
  EXPECT_FALSE(hazards.meets({&a, 128, 192, true}));
  EXPECT_FALSE(hazards.meets({&a, 0, 64, true}));
  EXPECT_FALSE(hazards.meets({&b, 64, 128, true}));
  ASSERT_TRUE(hazards.add({&b, 0, 64, true}));
  EXPECT_TRUE(hazards.meets({&b, 63, 70, false})) << "written";
  hazards.clear();
  EXPECT_FALSE(hazards.meets({&b, 63, 70, false}));
}

struct Said {
  unsigned submissions = 0, few = 0, few_barriers = 0, many = 0, many_barriers = 0;
};

class VulkanBarriers : public VulkanTest {};

// Queries, keys and values are made side by side, and shaders for many rows are no part of what a token runs. That results are
// right and validation is silent the tests of whole models show.
TEST_F(VulkanBarriers, ASessionTellsHowFewItNeeds) {
  for (const char* kind : {"f32", "int8"}) {
    SCOPED_TRACE(kind);
    TinyModel bytes = tiny_model(kind);
    Said said;
    oxb_open_options options = oxb::OpenOptions();
    options.log = [](void* context, oxb_log_level level, const char* text) {
      const char* at = std::strstr(text, " on Vulkan: ");
      if (level != OXB_LOG_INFO || at == nullptr) return;
      auto& said = *static_cast<Said*>(context);
      std::sscanf(at,
                  " on Vulkan: %u submissions, for few rows %u dispatches and %u barriers, for "
                  "many %u and %u",
                  &said.submissions, &said.few, &said.few_barriers, &said.many,
                  &said.many_barriers);
    };
    options.log_context = &said;
    const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()), options);
    const auto session = oxb::Session::create(*model, vulkan_options());
    ASSERT_TRUE(session.ok()) << session.status().text();
    EXPECT_EQ(said.submissions, 1u);
    EXPECT_GT(said.few_barriers, 10u);
    EXPECT_LT(said.few_barriers, said.few);
    EXPECT_LE(said.few, said.many);
    EXPECT_LE(said.few_barriers, said.many_barriers);
  }
}

}  // namespace
}  // namespace oxbow::testing
