// The golden packs on a Vulkan device with validation.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/testing/vulkan_wanted.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/device/vulkan/wrapper/hooks.h"
#include "tests/support/cli.h"
#include "tests/support/golden.h"
#include "tests/support/random_stream.h"

namespace oxbow::testing {
namespace {

/// Of the architectures whose every step has a shader; groups of 17 elements, which one norm has, are the CPU's.
std::vector<std::string> full_cases() {
  std::vector<std::string> found;
  for (const std::string& pack : golden_cases()) {
    for (const char* system :
         {"gpt2/", "hf_transfo_xl/", "labml_aft/", "labml_compressive/", "labml_fast_weights/",
          "labml_hourglass/", "labml_xl/", "lite_transformer/", "llama/", "lucidrains_compressive/",
          "mamba/", "mamba2/", "rwkv/", "rwkv7/", "transformer_xl_original/", "xlstm/"}) {
      if (pack.rfind(system, 0) == 0 && pack != "mamba2/m2c_gelu") found.push_back(pack);
    }
  }
  return found;
}

class AllVulkanGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!vulkan_wanted()) GTEST_SKIP() << "OXB_TEST_VULKAN=0";
    setenv("OXBOW_VULKAN_VALIDATE", "1", 1);
    // Programs started from here do not keep the driver loaded, see tests/support/vulkan_leaks.cc.
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  }
  std::string converted(const Words& options) { return golden_model(GetParam(), options); }
};

class VulkanGolden : public AllVulkanGolden {};

// To the pack's own tolerance, which is that of the CPU; beam search included.
TEST_P(AllVulkanGolden, FloatMatchesTheOriginal) {
  const std::string model =
      converted({"--weights", "f32", "--activations", "f32", "--debug-outputs"});
  const std::string io = (golden() / GetParam() / "io.safetensors").string();
  const CommandResult result = oxbow({"verify", model, io, "--backend", "vulkan"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "") << "validation";
}

TEST_P(VulkanGolden, EveryStepRunsOnTheDevice) {
  for (const char* weights : {"f32", "int8"}) {
    const std::string model = converted(
        {"--weights", weights, "--activations", std::string(weights) == "f32" ? "f32" : "dynamic"});
    const CommandResult result = oxbow({"inspect", model, "--backend", "vulkan", "--json"});
    const nlohmann::json report = nlohmann::json::parse(result.out);
    ASSERT_GT(report["step_providers"].size(), 10u);
    for (size_t i = 0; i < report["step_providers"].size(); ++i) {
      EXPECT_EQ(report["step_providers"][i], "vulkan") << weights << ", step " << i;
    }
  }
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
    ab += double{a[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// The shaders add in the CPU's order, so that even what is not integer has its bits. Only the angles of rotary positions
// are rounded from another number.
TEST_P(VulkanGolden, Int8HasTheBitsOfTheCpu) {
  const std::string file = converted({"--weights", "int8"});
  const auto model = oxb::Model::open(file.c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  const uint32_t errors = vulkan::counters().errors;
  RandomStream stream(*model, 3);
  oxb_session_options options = oxb::SessionOptions();
  options.backend = OXB_BACKEND_VULKAN;
  for (const size_t length : {SIZE_MAX, size_t{1}}) {
    const auto next = [&] { return length; };
    const std::vector<float> own = stream.logits(next), device = stream.logits(next, options);
    ASSERT_EQ(own.size(), device.size());
    if (GetParam().rfind("llama/", 0) == 0) {
      EXPECT_GE(cosine(own, device), 0.9999);
    } else {
      EXPECT_EQ(own, device);
    }
  }
  EXPECT_EQ(vulkan::counters().errors.load(), errors) << "validation found errors";
  EXPECT_EQ(vulkan::counters().objects.load(), 0) << "objects are left";
}

INSTANTIATE_TEST_SUITE_P(Cases, AllVulkanGolden, ::testing::ValuesIn(golden_cases()),
                         [](const auto& test) { return golden_test_name(test.param); });
INSTANTIATE_TEST_SUITE_P(Cases, VulkanGolden, ::testing::ValuesIn(full_cases()),
                         [](const auto& test) { return golden_test_name(test.param); });

}  // namespace
}  // namespace oxbow::testing
