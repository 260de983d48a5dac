// Layers that Vela compiled for Ethos-U, on a device in software behind the calls of Linux: the bits of the CPU, every byte told,
// and hostile streams. Compiled layers of the packs are in tests/npu/ethosu.cache; scripts/test npu makes them anew.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/testing/paths.h"
#include "host/testing/temporary_directory.h"
#include "runtime/base/hash.h"
#include "runtime/device/npu/ethosu/stream.h"
#include "tests/support/edit_model.h"
#include "tests/support/ethosu_device.h"
#include "tests/support/ethosu_streams.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/npu.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

constexpr const char* kSmall = "labml_compressive/c1_d32_fullP";

/// These have all packs in the cache, the others the smallest.
bool has_all_packs(const EthosuTestChip& chip) {
  return chip.config == kConfigU55 || chip.config == kConfigU65;
}

/// A pack with layers for the chips that `wanted` tells. What is not in their cache would need vela.
template <typename Wanted>
std::string model_for(const std::string& name, const std::string& rows, const std::string& cache,
                      const Wanted& wanted) {
  std::vector<std::string> words = {"--weights",  "int8",   "--no-quality",
                                    "--npu-rows", rows,     "--npu-cache",
                                    cache,        "--vela", "vela-is-not-needed"};
  for (const EthosuTestChip& chip : kEthosuChips) {
    if (wanted(chip)) words.insert(words.end(), {"--npu", chip.target});
  }
  return golden_model(name, words);
}

std::string kept_cache() { return source_dir() + "/tests/npu/ethosu.cache"; }

std::string model_of(const std::string& name) {
  return model_for(name, name == kSmall ? "4,16" : "16", kept_cache(), has_all_packs);
}

/// The smallest pack, for a chip.
std::string small_model_of(const EthosuTestChip& chip) {
  if (has_all_packs(chip)) return model_of(kSmall);
  return model_for(kSmall, "16", kept_cache(),
                   [](const EthosuTestChip& one) { return !has_all_packs(one); });
}

oxb::Npu open_on(const FakeEthosu& device) {
  oxb::NpuOptions options;
  options.linked = device.plugin();
  auto npu = oxb::Npu::open(options);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  return std::move(*npu);
}

/// The chip gives the bits of the CPU for any rows, takes no step of its own accord to the CPU, and gives its buffers back.
void expect_bits_of_cpu(const std::string& file, const EthosuTestChip& chip,
                        const std::vector<float>& expected) {
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

class EthosuGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(EthosuGolden, TheChipGivesTheBitsOfTheCpuForAnyRows) {
  const std::string file = model_of(GetParam());
  const std::vector<float> expected = run_story(file, {});
  for (const EthosuTestChip& chip : kEthosuChips) {
    if (has_all_packs(chip)) expect_bits_of_cpu(file, chip, expected);
  }
}

/// With a cache of all packs for all chips, which scripts/test npu makes.
TEST_P(EthosuGolden, EveryChipGivesTheBitsOfTheCpu) {
  const char* cache = std::getenv("OXB_ETHOSU_CACHE");
  if (cache == nullptr) GTEST_SKIP() << "OXB_ETHOSU_CACHE names no cache of all chips";
  const std::string file = model_for(
      GetParam(), "16", cache, [](const EthosuTestChip& chip) { return !has_all_packs(chip); });
  const std::vector<float> expected = run_story(file, {});
  for (const EthosuTestChip& chip : kEthosuChips) {
    if (!has_all_packs(chip)) expect_bits_of_cpu(file, chip, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EthosuGolden, ::testing::ValuesIn(npu_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

class EthosuChips : public ::testing::TestWithParam<EthosuTestChip> {};

TEST_P(EthosuChips, GiveTheBitsOfTheCpuForAnyRows) {
  const std::string file = small_model_of(GetParam());
  expect_bits_of_cpu(file, GetParam(), run_story(file, {}));
}

TEST_P(EthosuChips, TakeTheBytesThatWereTold) {
  const auto model = oxb::Model::open(small_model_of(GetParam()).c_str());
  FakeEthosu device(GetParam().config);
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

TEST_P(EthosuChips, RefuseEveryChangedByteOfAStreamOrItIsHarmless) {
  const Blob blob = first_layer(small_model_of(GetParam()), GetParam().target);
  ASSERT_FALSE(blob.commands.empty());
  expect_refused_or_harmless(blob);
}

TEST_P(EthosuChips, EveryChangedByteOfTheWeightsIsHarmless) {
  Blob blob = first_layer(small_model_of(GetParam()), GetParam().target);
  EthosuCommands commands;
  ASSERT_EQ(read_ethosu_commands(blob.commands, &commands), nullptr);
  for (std::byte& byte : blob.weights) {
    byte ^= std::byte{0xff};
    run_alone(commands, blob.weights);
    byte ^= std::byte{0xff};
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, EthosuChips, ::testing::ValuesIn(kEthosuChips),
                         [](const auto& tested) { return golden_test_name(tested.param.target); });

constexpr const char* kNoValue = "a register has a value that no sums need";
constexpr const char* kRowsOutside = "rows are read outside of their region";
constexpr const char* kResultsOutside = "results are written outside of their region";
constexpr const char* kWeightsOutside = "weights or scales are read outside of their region";

TEST_P(EthosuChips, RefuseStreamsThatLeaveTheirRegionsWithTheReason) {
  const Blob blob = first_layer(small_model_of(GetParam()), GetParam().target);
  EXPECT_EQ(refusal(blob, kIfmBase0, 1 << 20), kRowsOutside);
  EXPECT_EQ(refusal(blob, kIfmStrideY, 1 << 20), kRowsOutside);
  EXPECT_EQ(refusal(blob, kOfmBase0, 1 << 20), kResultsOutside);
  EXPECT_EQ(refusal(blob, kOfmDepthM1, 60000), kResultsOutside);
  EXPECT_EQ(refusal(blob, kWeightLength, 1 << 30), kWeightsOutside);
  EXPECT_EQ(refusal(blob, kScaleLength, 1), kWeightsOutside);
  EXPECT_EQ(refusal(blob, kOfmRegion, 0), kNoValue);
  EXPECT_EQ(refusal(blob, kIfmRegion, 0), kNoValue);
  EXPECT_EQ(refusal(blob, kIfmPrecision, 0x41), kNoValue);
  EXPECT_EQ(refusal(blob, kActivation, 1), kNoValue);
  EXPECT_EQ(refusal(blob, kOfmHeight0M1, 0), "a picture has several tiles");
  EXPECT_EQ(refusal(blob, kOpConv, 1), "a convolution is of another kind");
  EthosuChip chip;
  ASSERT_TRUE(ethosu_chip(GetParam().config, &chip));
  for (uint32_t core = 1; core < chip.cores(); ++core) {
    EXPECT_EQ(refusal(blob, kEthosuWeightRegisters[core].base, 1 << 30), kWeightsOutside);
    EXPECT_EQ(refusal(blob, kEthosuWeightRegisters[core].length, 1 << 30), kWeightsOutside);
  }
  if (chip.product == EthosuChip::kU65) {
    EXPECT_EQ(refusal(blob, kParallelMode, 2 - chip.cores()), kNoValue);
    if (chip.cores() == 2) {
      EXPECT_EQ(refusal(blob, kScale1Base, 1 << 30), kWeightsOutside);
      EXPECT_EQ(refusal(blob, kScale1Length, 1), kWeightsOutside);
    }
  }
  if (chip.product == EthosuChip::kU85) {
    EXPECT_EQ(refusal(blob, kWeightFormat, 1), kNoValue);
    EXPECT_EQ(refusal(blob, kAccFormat, 0x310), kNoValue);
    EXPECT_EQ(refusal(blob, kOfmScale, 2), kNoValue);
  }
}

/// The stream of a U85 whose rows are first copied to fast memory, as Vela does when they are read often.
Blob with_copied_rows(Blob blob) {
  EthosuCommands old;
  EXPECT_EQ(read_ethosu_commands(blob.commands, &old), nullptr);
  EthosuReader reader(old.stream);
  uint32_t operation = 0;
  const char* why = nullptr;
  while (reader.next(&operation, &why) && operation != kOpConv) {
  }
  const EthosuState& state = reader.state();
  const auto depth = static_cast<uint32_t>(state.size(kIfmDepthM1));
  old.header.fast_bytes = old.header.input_bytes;
  Stream made;
  // All but the last two words, which start the convolution and end the stream.
  made.add(old.stream.first(old.stream.size() - 2));
  made.set(kOfmRegion, kEthosuFast);
  made.set(kOfmBase0, 0);
  made.set(kOfmDepthM1, depth - 1);
  made.set(kOfmStrideX, depth);
  made.set(kOfmStrideY, depth);
  made.set(kOfmStrideC, 1);
  made.set(kOfmPrecision, 0x101);
  made.set(kActivation, 0);
  made.set(kActivationMin, 0xff80);
  made.set(kActivationMax, 0x7f);
  made.set(kOpPool, kPoolSum);
  made.add(old.stream.first(old.stream.size() - 2));
  made.set(kIfmRegion, kEthosuFast);
  made.set(kIfmBase0, 0);
  made.add(old.stream.last(2));
  blob.commands = made.commands(old);
  return blob;
}

/// The results of a stream for rows of 0, 1, 2 and so on.
std::vector<std::byte> results_of(const Blob& blob) {
  EthosuCommands commands;
  EXPECT_EQ(read_ethosu_commands(blob.commands, &commands), nullptr);
  const char* wrong = check_ethosu_stream(commands, blob.weights.size(), blob.result);
  EXPECT_EQ(wrong, nullptr) << wrong;
  std::vector<std::byte> weights = blob.weights, scratch(commands.header.scratch_bytes),
                         fast(commands.header.fast_bytes);
  for (size_t i = 0; i < commands.header.input_bytes; ++i) {
    scratch[commands.header.input_offset + i] = std::byte(i);
  }
  const std::span<std::byte> regions[] = {weights, scratch, fast};
  DecodedWeights decoded;
  wrong = run_ethosu_stream(commands.config, commands.stream, regions, decoded);
  EXPECT_EQ(wrong, nullptr) << wrong;
  const std::byte* results = scratch.data() + commands.header.output_offset;
  return {results, results + commands.header.output_bytes};
}

TEST(Ethosu, RowsCopiedToFastMemoryGiveTheSameAndNothingElseIsAPool) {
  for (const EthosuTestChip& chip : kEthosuChips) {
    EthosuChip read;
    ASSERT_TRUE(ethosu_chip(chip.config, &read));
    if (read.product != EthosuChip::kU85) continue;
    const Blob plain = first_layer(small_model_of(chip), chip.target);
    const Blob blob = with_copied_rows(plain);
    EXPECT_TRUE(results_of(blob) == results_of(plain)) << chip.target;
    EXPECT_EQ(refusal(blob, kOpPool, 1), "a pool is of another kind");
    EXPECT_EQ(refusal(blob, kIfmDepthM1, 0), "a copy has another depth");
    expect_refused_or_harmless(blob);
  }
  // No other chip has this command for rows.
  Blob old = first_layer(small_model_of(kEthosuChips[0]), kEthosuChips[0].target);
  EthosuCommands commands;
  ASSERT_EQ(read_ethosu_commands(old.commands, &commands), nullptr);
  Stream made;
  made.add(commands.stream.first(commands.stream.size() - 1));
  made.set(kOpPool, kPoolSum);
  made.add(commands.stream.last(1));
  const std::vector<std::byte> bytes = made.commands(commands);
  ASSERT_EQ(read_ethosu_commands(bytes, &commands), nullptr);
  EXPECT_STREQ(check_ethosu_stream(commands, old.weights.size(), old.result),
               "a command is unknown");
}

TEST(Ethosu, InspectTellsEstimatesTheirConfigurationAndWhatStays) {
  const std::string file = model_of(kSmall);
  const CommandResult result = run_program("oxbow", {"inspect", file, "--npu", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json npu = nlohmann::json::parse(result.out).at("npu");
  const schema::ModelT model = describe_file(file).model;
  ASSERT_EQ(npu.at("offloads").size(), model.offloads.size());
  for (size_t i = 0; i < model.offloads.size(); ++i) {
    const nlohmann::json& told = npu.at("offloads").at(i);
    const schema::OffloadT& offload = *model.offloads[i];
    EXPECT_EQ(told.at("target"), offload.target);
    EXPECT_EQ(told.at("rows"), offload.rows);
    EXPECT_EQ(told.at("cycles"), offload.cycles);
    EXPECT_EQ(told.at("weight_bytes"), offload.weight_bytes);
    EXPECT_EQ(told.at("macs"), uint64_t{offload.rows} * told.at("depth").get<uint64_t>() *
                                   told.at("channels").get<uint64_t>());
    // Both chips make 256 products in a cycle.
    EXPECT_DOUBLE_EQ(told.at("utilisation").get<double>(),
                     told.at("macs").get<double>() / (256.0 * static_cast<double>(offload.cycles)));
    const std::string system = offload.target == "ethos-u55-256"
                                   ? "Ethos_U55_High_End_Embedded, memory Shared_Sram"
                                   : "Ethos_U65_Client_Server, memory Dedicated_Sram_384KB";
    EXPECT_EQ(told.at("compiler"), "vela for " + offload.target + ", system " + system);
  }
  // Two chips and two numbers of rows.
  EXPECT_EQ(npu.at("totals").size(), 4u);
  size_t left = 0, steps = 0;
  for (const nlohmann::json& one : npu.at("on_cpu")) {
    left += one.at("steps").get<size_t>();
    EXPECT_FALSE(one.at("why").get<std::string>().empty());
  }
  for (const auto& entry : model.entry_points) steps += entry->steps.size();
  EXPECT_EQ(left + model.offloads.size() / 4, steps);
}

TEST(Ethosu, ConvertersNameTheChipsThereAre) {
  const TemporaryDirectory directory;
  const CommandResult result = run_program(
      "oxbow-convert", {source_dir() + "/tests/golden/" + kSmall, "-o", directory / "model.oxb",
                        "--weights", "int8", "--no-quality", "--npu", "ethos-u85-64"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--npu ethos-u85-64 does not exist; there are ethos-u55-32, "),
            std::string::npos)
      << result.err;
}

TEST(Ethosu, VelaIsToldItsSystemAndMemory) {
  const TemporaryDirectory directory;
  const std::string vela = directory / "vela";
  std::ofstream(vela) << "#!/bin/sh\necho \"$*\"\nexit 1\n";
  std::filesystem::permissions(vela, std::filesystem::perms::owner_all);
  const auto told = [&](const char* target, const std::vector<std::string>& more) {
    std::vector<std::string> words = {source_dir() + "/tests/golden/" + kSmall,
                                      "-o",
                                      directory / "model.oxb",
                                      "--weights",
                                      "int8",
                                      "--no-quality",
                                      "--npu",
                                      target,
                                      "--vela",
                                      vela};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_program("oxbow-convert", words);
    EXPECT_EQ(result.exit_code, 3) << result.err;
    return result.err;
  };
  std::string words = told("ethos-u85-512", {});
  EXPECT_NE(words.find("--accelerator-config ethos-u85-512 --system-config Ethos_U85_SYS_DRAM_Mid "
                       "--memory-mode Dedicated_Sram_384KB "),
            std::string::npos)
      << words;
  EXPECT_NE(words.find(" --disable-fwd"), std::string::npos) << words;
  words = told("ethos-u55-64",
               {"--vela-system", "Ethos_U55_Deep_Embedded", "--vela-memory", "Sram_Only"});
  EXPECT_NE(words.find("--accelerator-config ethos-u55-64 --system-config Ethos_U55_Deep_Embedded "
                       "--memory-mode Sram_Only "),
            std::string::npos)
      << words;
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
    if (first == nullptr && offload->target == "ethos-u65-256") first = offload.get();
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
