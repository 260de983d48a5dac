// Sessions as they would be on devices that are not here: tests/support/vulkan_devices.h, fed through the hooks.

#include "tests/support/vulkan_devices.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/vulkan/wrapper/context.h"
#include "tests/support/vulkan_session.h"

namespace oxbow::testing {
namespace {

class VulkanDevices : public VulkanTest {};

/// The ops that the CPU runs, by name, after a run of the tiny model.
std::string ops_on_the_cpu(const oxb::Model& model) {
  auto session = oxb::Session::create(model, vulkan_options());
  EXPECT_TRUE(session.ok()) << session.status().text();
  if (!session.ok()) return "no session";
  std::vector<std::string> ops;
  session->set_profile(
      [](void* list, uint32_t step, const char* op, const char*, uint64_t) {
        auto& names = *static_cast<std::vector<std::string>*>(list);
        if (names.size() <= step) names.resize(step + 1);
        names[step] = op;
      },
      &ops);
  EXPECT_TRUE(session->run(kTokens).ok());
  std::set<std::string> on_cpu;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (std::strcmp(session->step_provider(i), "vulkan") != 0) on_cpu.insert(ops[i]);
  }
  std::string all;
  for (const std::string& op : on_cpu) all += op + " ";
  return all;
}

class PublishedDevices : public VulkanDevices,
                         public ::testing::WithParamInterface<PublishedDevice> {};

TEST_P(PublishedDevices, ASessionIsMadeAndOnlyWhatTheyCannotBindStaysOnTheCpu) {
  const PublishedDevice& device = GetParam();
  const vulkan::SimulatedDevice simulated = device.simulated();
  vulkan::hooks().simulated = &simulated;
  for (const std::string kind : {"f32", "int8"}) {
    SCOPED_TRACE(std::string(device.name) + ", " + kind);
    TinyModel bytes = tiny_model(kind);
    const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
    ASSERT_TRUE(model.ok());
    if (device.cpu_ops == nullptr) {
      const auto session = oxb::Session::create(*model, vulkan_options());
      EXPECT_EQ(session.status().code(), OXB_NO_DEVICE);
      EXPECT_NE(std::strstr(session.status().text(), "version 1.0"), nullptr)
          << session.status().text();
      continue;
    }
    vulkan::Context* context = nullptr;  // Keeps the pipelines for all sessions of this kind.
    ASSERT_EQ(vulkan::acquire_context(&context, nullptr), Status::kOk);
    const VulkanFeatures& features = context->device.features;
    EXPECT_GE(features.binding_alignment, device.binding_alignment.value);
    EXPECT_LE(features.max_bindings, device.max_bindings.value);
    EXPECT_LE(features.shared_bytes, device.shared_bytes.value);
    EXPECT_EQ(features.int_dot, device.int_dot.value != 0);
    const uint32_t packed = vulkan::counters().int_dot_pipelines;
    EXPECT_EQ(ops_on_the_cpu(*model), device.cpu_ops);
    EXPECT_EQ(logits_of(bytes, vulkan_options()), logits_of(bytes, oxb::SessionOptions()));
    // Dense layers of int8 and attention to int8 keys have a second shader.
    EXPECT_EQ(vulkan::counters().int_dot_pipelines != packed,
              device.int_dot.value != 0 && kind == "int8");
    vulkan::release_context(context);
  }
}

std::string device_test_name(const ::testing::TestParamInfo<PublishedDevice>& test) {
  std::string name;
  for (const char c : std::string(test.param.name)) name += std::isalnum(c) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, PublishedDevices, ::testing::ValuesIn(kPublishedDevices),
                         device_test_name);

// A figure that says where it is from must say so in its row.
TEST_F(VulkanDevices, EveryFigureHasASource) {
  for (const PublishedDevice& device : kPublishedDevices) {
    SCOPED_TRACE(device.name);
    for (const Figure& figure :
         {device.version, device.max_bindings, device.binding_alignment, device.max_binding_bytes,
          device.max_allocation, device.max_group_threads, device.shared_bytes,
          device.subgroup_size, device.int_dot, device.float16, device.storage8,
          device.timestamps}) {
      if (figure.source == FigureSource::kDriver) {
        EXPECT_STRNE(device.driver_file, "");
      }
      if (figure.source == FigureSource::kReport) {
        EXPECT_STRNE(device.report_address, "");
      }
    }
  }
}

}  // namespace
}  // namespace oxbow::testing
