// Layers that Vela compiled for Ethos-U, on a device in software behind the calls of Linux: the bits of the CPU, every byte told,
// and hostile streams. Compiled layers of the packs are in tests/npu/ethosu.cache; scripts/test npu makes them anew.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/testing/paths.h"
#include "runtime/base/hash.h"
#include "runtime/device/npu/ethosu/stream.h"
#include "tests/support/edit_model.h"
#include "tests/support/ethosu_device.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/npu.h"

namespace oxbow::testing {
namespace {

struct Chip {
  const char* target;
  uint32_t config;
};
constexpr Chip kChips[] = {{"ethos-u55-256", kConfigU55}, {"ethos-u65-256", kConfigU65}};

constexpr const char* kSmall = "labml_compressive/c1_d32_fullP";

/// A pack with layers for both chips. What is not in their cache would need vela.
std::string model_of(const std::string& name) {
  return golden_model(
      name, {"--weights", "int8", "--no-quality", "--npu", kChips[0].target, "--npu",
             kChips[1].target, "--npu-rows", name == kSmall ? "4,16" : "16", "--npu-cache",
             source_dir() + "/tests/npu/ethosu.cache", "--vela", "vela-is-not-needed"});
}

oxb::Npu open_on(const FakeEthosu& device) {
  oxb::NpuOptions options;
  options.linked = device.plugin();
  auto npu = oxb::Npu::open(options);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  return std::move(*npu);
}

class EthosuGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(EthosuGolden, TheChipGivesTheBitsOfTheCpuForAnyRows) {
  const std::string file = model_of(GetParam());
  const std::vector<float> expected = run_story(file, {});
  for (const Chip& chip : kChips) {
    FakeEthosu device(chip.config);
    {
      const oxb::Npu npu = open_on(device);
      oxb_npu_report report = OXB_NPU_REPORT_INIT;
      EXPECT_TRUE(run_story(file, {npu.get(), 1}, &report) == expected) << chip.target;
      EXPECT_EQ(report.failed, 0) << report.failure << ": " << device.complaint();
      EXPECT_EQ(report.cpu_runs, 0u);
      EXPECT_GE(device.jobs(), report.runs);
      EXPECT_GT(report.runs, 0u);
    }
    EXPECT_EQ(device.buffers(), 0u) << "a buffer was not given back";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EthosuGolden, ::testing::ValuesIn(npu_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

TEST(Ethosu, BytesToldBeforehandAreThoseTheDeviceGives) {
  const auto model = oxb::Model::open(model_of(kSmall).c_str());
  FakeEthosu device(kConfigU65);
  const oxb::Npu npu = open_on(device);
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu.get();
  const auto plan = model->plan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(device.buffers(), 0u) << "planning has taken memory";
  const auto session = oxb::Session::create(*model, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const oxb_npu_report report = *session->npu_report();
  EXPECT_EQ(device.bytes(), report.device_bytes);
  EXPECT_EQ(session->backend_bytes(), plan->device_bytes);
}

TEST(Ethosu, LayersOfAnotherChipAreLeftAlone) {
  const auto model = oxb::Model::open(model_of(kSmall).c_str());
  FakeEthosu device(0x10003009);
  const oxb::Npu npu = open_on(device);
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu.get();
  EXPECT_STREQ(
      model->plan(options).status().text(),
      "the file has no layers that plug-in 'ethosu' runs, which is made for ethos-u65-512: "
      "convert it with --npu");
}

TEST(Ethosu, EveryCallThatFailsAtCreationGivesAllBuffersBack) {
  const auto model = oxb::Model::open(model_of(kSmall).c_str());
  bool is_created = false;
  for (uint32_t at = 1; !is_created && at < 1000; ++at) {
    FakeEthosu device(kConfigU65);
    const oxb::Npu npu = open_on(device);
    oxb::SessionOptions options;
    options.backend = OXB_BACKEND_NPU;
    options.npu = npu.get();
    ASSERT_TRUE(model->plan(options).ok());
    device.fail_at = at;
    const auto session = oxb::Session::create(*model, options);
    is_created = session.ok();
    if (is_created) {
      EXPECT_GT(at, 30u);
      continue;
    }
    EXPECT_EQ(session.status().code(), OXB_OUT_OF_MEMORY) << session.status().text();
    EXPECT_EQ(device.buffers(), 0u) << at;
  }
  EXPECT_TRUE(is_created);
}

TEST(Ethosu, ADeviceThatStopsAnsweringLosesNothing) {
  const std::string file = model_of(kSmall);
  const std::vector<float> expected = run_story(file, {});
  // Behind those that create the session.
  for (const uint32_t at : {200u, 201u, 230u, 300u}) {
    FakeEthosu device(kConfigU65);
    const oxb::Npu npu = open_on(device);
    device.fail_at = at;
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    EXPECT_TRUE(run_story(file, {npu.get(), 1}, &report) == expected) << at;
    EXPECT_NE(report.failed, 0) << at;
    EXPECT_NE(std::string(report.failure).find("the device "), std::string::npos) << report.failure;
  }
}

TEST(Ethosu, TheDeviceOfLinuxIsNotThereAndIsTold) {
  oxb::NpuOptions options;
  options.plugin = "ethosu";
  const char* key = "device";
  const char* value = "/nowhere/accel0";
  options.keys = &key;
  options.values = &value;
  options.key_count = 1;
  const auto npu = oxb::Npu::open(options);
  EXPECT_EQ(npu.status().code(), OXB_NO_DEVICE);
  EXPECT_STREQ(npu.status().text(), "plug-in 'ethosu': /nowhere/accel0 cannot be opened");
  key = "speed";
  EXPECT_STREQ(oxb::Npu::open(options).status().text(),
               "plug-in 'ethosu': there is no setting 'speed'; there are device and timeout_ms");
}

/// The bytes of the file's first layer for a chip.
std::vector<std::byte> first_commands(const std::string& file, const char* target,
                                      size_t* weight_bytes) {
  const std::vector<std::byte> bytes = read_bytes(file);
  const FilePrefix prefix = read_prefix(bytes);
  const schema::ModelT model = describe_file(file).model;
  for (const auto& offload : model.offloads) {
    if (offload->target != target) continue;
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(prefix.data_offset) +
                      static_cast<std::ptrdiff_t>(offload->commands);
    *weight_bytes = offload->weight_bytes;
    return {from, from + static_cast<std::ptrdiff_t>(offload->command_bytes)};
  }
  return {};
}

TEST(Ethosu, EveryChangedByteOfAStreamIsRefusedOrHarmless) {
  for (const Chip& chip : kChips) {
    size_t weight_bytes = 0;
    std::vector<std::byte> bytes = first_commands(model_of(kSmall), chip.target, &weight_bytes);
    ASSERT_FALSE(bytes.empty());
    size_t refused = 0, harmless = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        const std::byte before = bytes[i];
        bytes[i] ^= std::byte(flip);
        EthosuCommands commands;
        if (read_ethosu_commands(bytes, &commands) != nullptr ||
            check_ethosu_stream(commands, weight_bytes) != nullptr) {
          ++refused;
        } else {
          // Regions of exactly these sizes: the sanitizer sees a byte too many.
          std::vector<std::byte> weights(weight_bytes), scratch(commands.header.scratch_bytes),
              fast(commands.header.fast_bytes);
          const std::span<std::byte> regions[] = {weights, scratch, fast};
          DecodedWeights decoded;
          (void)run_ethosu_stream(commands.stream, regions, decoded);
          ++harmless;
        }
        bytes[i] = before;
      }
    }
    EXPECT_GT(refused, harmless) << chip.target;
    EXPECT_GT(harmless, 0u) << chip.target;
  }
}

TEST(Ethosu, StreamsThatLeaveTheirRegionsAreRefusedWithTheReason) {
  size_t weight_bytes = 0;
  const std::vector<std::byte> bytes =
      first_commands(model_of(kSmall), kChips[1].target, &weight_bytes);
  const auto refusal = [&](uint32_t command, uint32_t value) {
    std::vector<std::byte> changed = bytes;
    EthosuCommands commands;
    EXPECT_EQ(read_ethosu_commands(changed, &commands), nullptr);
    auto* words = const_cast<uint32_t*>(commands.stream.data());
    for (size_t i = 0; i < commands.stream.size(); ++i) {
      const bool is_long = (words[i] & 0xc000) == 0x4000;
      if (((words[i] & 0x3ff) | (is_long ? 0x400u : 0u)) == command) {
        if (is_long) {
          words[i + 1] = value;
        } else {
          words[i] = (words[i] & 0xffff) | value << 16;
        }
      }
      i += is_long;
    }
    const char* why = check_ethosu_stream(commands, weight_bytes);
    return std::string(why == nullptr ? "" : why);
  };
  EXPECT_EQ(refusal(kIfmBase0, 1 << 20), "rows are read outside of their region");
  EXPECT_EQ(refusal(kIfmStrideY, 1 << 20), "rows are read outside of their region");
  EXPECT_EQ(refusal(kOfmBase0, 1 << 20), "results are written outside of their region");
  EXPECT_EQ(refusal(kOfmDepthM1, 60000), "results are written outside of their region");
  EXPECT_EQ(refusal(kWeightLength, 1 << 30), "weights or scales are read outside of their region");
  EXPECT_EQ(refusal(kScaleLength, 1), "weights or scales are read outside of their region");
  EXPECT_EQ(refusal(kOfmRegion, 0), "a register has a value that no sums need");
  EXPECT_EQ(refusal(kIfmPrecision, 0x41), "a register has a value that no sums need");
  EXPECT_EQ(refusal(kOfmHeight0M1, 0), "a picture has several tiles");
}

TEST(Ethosu, AStreamWithItsHashRepairedIsJudgedByThePlugin) {
  const TemporaryDirectory directory;
  const std::string file = model_of(kSmall), changed = directory / "changed.oxb";
  const std::vector<float> expected = run_story(file, {});
  std::vector<std::byte> bytes = read_bytes(file);
  const FilePrefix prefix = read_prefix(bytes);
  const schema::ModelT graph = describe_file(file).model;
  // The region of the results of the first layer becomes that of the weights.
  const schema::OffloadT* first = nullptr;
  for (const auto& offload : graph.offloads) {
    if (first == nullptr && offload->target == kChips[1].target) first = offload.get();
  }
  auto* commands = bytes.data() + prefix.data_offset + first->commands;
  auto* words = reinterpret_cast<uint32_t*>(commands + sizeof(EthosuHeader));
  for (size_t i = 0; i < (first->command_bytes - sizeof(EthosuHeader)) / 4; ++i) {
    if ((words[i] & 0xffff) == kOfmRegion) words[i] &= 0xffff;
  }
  const auto* data = bytes.data() + prefix.data_offset;
  const uint64_t hash = hash_bytes(data + first->weights, first->weight_bytes,
                                   hash_bytes(data + first->commands, first->command_bytes));
  write_bytes(directory / "bytes.oxb", bytes);
  edit_model(directory / "bytes.oxb", changed, [&](schema::ModelT& model) {
    for (const auto& offload : model.offloads) {
      if (offload->commands == first->commands) offload->hash = hash;
    }
  });
  FakeEthosu device(kConfigU65);
  const oxb::Npu npu = open_on(device);
  oxb_npu_report whole = OXB_NPU_REPORT_INIT, report = OXB_NPU_REPORT_INIT;
  EXPECT_TRUE(run_story(file, {npu.get(), 1}, &whole) == expected);
  EXPECT_TRUE(run_story(changed, {npu.get(), 1}, &report) == expected);
  EXPECT_LT(report.layers, whole.layers);
}

}  // namespace
}  // namespace oxbow::testing
