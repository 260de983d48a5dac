// The plug-in for Ethos-U on a chip that the program reaches itself, through a function of its own in place of Linux: weights and
// commands stay where they are, and nothing is taken beside the session's memory.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/testing/paths.h"
#include "tests/support/ethosu_device.h"
#include "tests/support/golden.h"
#include "tests/support/npu.h"

namespace oxbow::testing {
namespace {

constexpr const char* kTarget = "ethos-u55-256";

std::string model() {
  return golden_model(
      "labml_compressive/c1_d32_fullP",
      {"--weights", "int8", "--no-quality", "--npu", kTarget, "--npu-rows", "4,16", "--npu-cache",
       source_dir() + "/tests/npu/ethosu.cache", "--vela", "vela-is-not-needed"});
}

oxb::Expected<oxb::Npu> open(const oxb_ethosu_driver& driver) {
  oxb::NpuOptions options;
  options.plugin = "ethosu";
  options.driver = &driver;
  return oxb::Npu::open(options);
}

TEST(EthosuDriver, GivesTheBitsOfTheCpuForAnyRows) {
  EthosuByDriver chip(kTarget, 0);
  const auto npu = open(chip.driver());
  ASSERT_TRUE(npu.ok()) << npu.status().text();
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  EXPECT_TRUE(run_story(model(), {npu->get(), 1}, &report) == run_story(model(), {}));
  EXPECT_EQ(report.failed, 0) << report.failure << ": " << chip.complaint();
  EXPECT_EQ(report.cpu_runs, 0u);
  EXPECT_GT(report.runs, 0u);
  EXPECT_GE(chip.jobs(), report.runs);
}

TEST(EthosuDriver, TakesNothingBesideTheBytesThatWereTold) {
  const auto opened = oxb::Model::open(model().c_str());
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EthosuByDriver chip(kTarget, 0);
  const auto npu = open(chip.driver());
  ASSERT_TRUE(npu.ok()) << npu.status().text();
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu->get();
  const auto plan = opened->plan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  const auto session = oxb::Session::create(*opened, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  EXPECT_EQ(session->npu_report()->device_bytes, 0u);
  EXPECT_GT(session->npu_report()->host_bytes, 0u);
  EXPECT_EQ(session->backend_bytes(), plan->device_bytes);
  EXPECT_EQ(chip.jobs(), 0u) << "creating a session has started a job";
}

TEST(EthosuDriver, AChipThatStopsAnsweringLosesNothing) {
  const std::vector<float> expected = run_story(model(), {});
  for (const uint32_t at : {1u, 2u, 50u}) {
    EthosuByDriver chip(kTarget, 0);
    const auto npu = open(chip.driver());
    ASSERT_TRUE(npu.ok()) << npu.status().text();
    chip.fail_at = at;
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    EXPECT_TRUE(run_story(model(), {npu->get(), 1}, &report) == expected) << at;
    EXPECT_NE(report.failed, 0) << at;
    EXPECT_TRUE(std::string(report.failure).ends_with("': the driver does not finish its job"))
        << report.failure;
  }
}

TEST(EthosuDriver, LayersOfAnotherChipAreLeftAlone) {
  const auto opened = oxb::Model::open(model().c_str());
  EthosuByDriver chip("ethos-u55-128", 0);
  const auto npu = open(chip.driver());
  ASSERT_TRUE(npu.ok()) << npu.status().text();
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu->get();
  EXPECT_STREQ(opened->plan(options).status().text(),
               "the file has no layers that plug-in 'ethosu' runs, which is made for "
               "ethos-u55-128: convert it with --npu");
}

TEST(EthosuDriver, DriversThatLackSomethingAreRefused) {
  EthosuByDriver chip(kTarget, 64);
  oxb_ethosu_driver driver = chip.driver();
  driver.invoke = nullptr;
  EXPECT_STREQ(open(driver).status().text(),
               "plug-in 'ethosu': the driver has no target or no function");
  driver = chip.driver();
  driver.target = nullptr;
  EXPECT_STREQ(open(driver).status().text(),
               "plug-in 'ethosu': the driver has no target or no function");
  driver = chip.driver();
  driver.size = 8;
  EXPECT_STREQ(open(driver).status().text(),
               "plug-in 'ethosu': the driver has no target or no function");
  driver = chip.driver();
  driver.fast = static_cast<std::byte*>(driver.fast) + 1;
  EXPECT_STREQ(open(driver).status().text(),
               "plug-in 'ethosu': the driver's fast memory is not aligned");
  driver = chip.driver();
  driver.target = "ethos-u55-256 of another, longer name";
  EXPECT_STREQ(open(driver).status().text(), "plug-in 'ethosu': the driver's target is unknown");
  oxb::NpuOptions options;
  options.plugin = "ethosu";
  options.driver = &chip.driver();
  const char* key = "device";
  const char* value = "/dev/accel/accel0";
  options.keys = &key;
  options.values = &value;
  options.key_count = 1;
  EXPECT_STREQ(oxb::Npu::open(options).status().text(),
               "plug-in 'ethosu': with a driver there are no settings");
}

}  // namespace
}  // namespace oxbow::testing
