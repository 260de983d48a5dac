// Chains that Vela compiled for Ethos-U: several static layers as one stream, rounded in integers between them. On a device in
// software they give the codes of the stated formula; tests/npu has files with them for every chip, scripts/test npu makes more.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "converter/offload/ethosu.h"
#include "host/describe.h"
#include "host/testing/paths.h"
#include "host/testing/temporary_directory.h"
#include "tests/support/ethosu_device.h"
#include "tests/support/ethosu_streams.h"
#include "tests/support/golden.h"
#include "tests/support/npu.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

/// With tables, for all chips; and with codes that begin at 0, for one of each product.
std::string gelu_chains() { return source_dir() + "/tests/npu/gelu_chains.oxb"; }
std::string relu_chains() { return source_dir() + "/tests/npu/relu_chains.oxb"; }

/// And those of the folder that scripts/test npu names.
std::vector<std::string> all_files() {
  std::vector<std::string> files = {gelu_chains(), relu_chains()};
  const char* folder = std::getenv("OXB_ETHOSU_CHAINS");
  if (folder == nullptr) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".oxb") files.push_back(entry.path().string());
  }
  return files;
}

oxb::Npu open_on(const FakeEthosu& device) {
  oxb::NpuOptions options;
  options.linked = device.plugin();
  auto npu = oxb::Npu::open(options);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  return std::move(*npu);
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

bool has_layers_for(const std::string& file, const EthosuTestChip& chip) {
  return !first_layer(file, chip.target, EthosuResult::kCodes).commands.empty();
}

class EthosuChain : public ::testing::TestWithParam<EthosuTestChip> {};

TEST_P(EthosuChain, GivesTheStatedFormulaToTheBitForAnyRows) {
  size_t files = 0;
  for (const std::string& file : all_files()) {
    if (!has_layers_for(file, GetParam())) continue;
    ++files;
    FakeEthosu device(GetParam().config);
    {
      const oxb::Npu npu = open_on(device);
      oxb_npu_report report = OXB_NPU_REPORT_INIT;
      // Shadow mode believes the CPU.
      EXPECT_TRUE(run_story(file, {npu.get(), 1, 1, true}, &report) == run_story(file, {}));
      EXPECT_EQ(report.failed, 0) << report.failure << ": " << device.complaint();
      EXPECT_EQ(report.cpu_runs, 0u);
      EXPECT_GT(report.compared, 0u);
      EXPECT_EQ(report.different, 0u)
          << file << ": " << report.largest_difference << " in " << report.largest_step;
    }
    EXPECT_EQ(device.buffers(), 0u) << "a buffer was not given back";
  }
  EXPECT_GE(files, 1u);
}

TEST_P(EthosuChain, GivesTheSameOnEveryChipAndIsNearTheCpu) {
  const auto run_on = [](const std::string& file, const EthosuTestChip& chip, uint32_t threads) {
    FakeEthosu device(chip.config);
    const oxb::Npu npu = open_on(device);
    return run_story(file, {npu.get(), 1, threads});
  };
  const std::vector<float> first = run_on(gelu_chains(), kEthosuChips[0], 1);
  EXPECT_TRUE(run_on(gelu_chains(), GetParam(), 2) == first);
  const std::vector<float> on_cpu = run_story(gelu_chains(), {});
  EXPECT_FALSE(first == on_cpu);
  EXPECT_GT(cosine(first, on_cpu), 0.98);
}

TEST_P(EthosuChain, TakesTheBytesThatWereTold) {
  const auto model = oxb::Model::open(gelu_chains().c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  FakeEthosu device(GetParam().config);
  const oxb::Npu npu = open_on(device);
  for (const bool shadow : {false, true}) {
    oxb::SessionOptions options;
    options.backend = OXB_BACKEND_NPU;
    options.npu = npu.get();
    options.npu_shadow = shadow ? 1 : 0;
    const auto plan = model->plan(options);
    ASSERT_TRUE(plan.ok()) << plan.status().text();
    EXPECT_EQ(device.buffers(), 0u) << "planning has taken memory";
    const auto session = oxb::Session::create(*model, options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    EXPECT_EQ(device.bytes(), session->npu_report()->device_bytes);
    EXPECT_EQ(session->backend_bytes(), plan->device_bytes);
  }
}

TEST_P(EthosuChain, RefusesEveryChangedByteOfAStreamOrItIsHarmless) {
  for (const std::string& file : {gelu_chains(), relu_chains()}) {
    const Blob blob = first_layer(file, GetParam().target, EthosuResult::kCodes);
    ASSERT_TRUE(!blob.commands.empty() || file == relu_chains());
    if (!blob.commands.empty()) expect_refused_or_harmless(blob);
  }
}

TEST_P(EthosuChain, EveryChangedByteOfWeightsScalesAndTablesIsHarmless) {
  Blob blob = first_layer(gelu_chains(), GetParam().target, EthosuResult::kCodes);
  EthosuCommands commands;
  ASSERT_EQ(read_ethosu_commands(blob.commands, &commands), nullptr);
  for (std::byte& byte : blob.weights) {
    byte ^= std::byte{0xff};
    run_alone(commands, blob.weights);
    byte ^= std::byte{0xff};
  }
}

constexpr const char* kNoValue = "a register has a value that no sums need";

TEST_P(EthosuChain, RefusesWhatNoCodesNeedWithTheReason) {
  const Blob blob = first_layer(gelu_chains(), GetParam().target, EthosuResult::kCodes);
  EthosuChip chip;
  ASSERT_TRUE(ethosu_chip(GetParam().config, &chip));
  const bool is_u85 = chip.product == EthosuChip::kU85;
  EXPECT_EQ(refusal(blob, kIfmBase0, 1 << 20), "rows are read outside of their region");
  EXPECT_EQ(refusal(blob, kOfmBase0, 1 << 20), "results are written outside of their region");
  EXPECT_EQ(refusal(blob, kOfmDepthM1, 60000), "results are written outside of their region");
  EXPECT_EQ(refusal(blob, kOfmStrideC, 1 << 20), "results are written outside of their region");
  EXPECT_EQ(refusal(blob, kOfmRegion, 0), kNoValue);
  EXPECT_EQ(refusal(blob, kIfmPrecision, 5), kNoValue);
  EXPECT_EQ(refusal(blob, kActivationMin, 5), kNoValue);
  EXPECT_EQ(refusal(blob, kActivationMax, 5), kNoValue);
  // Other ways to round, and a scale for all channels.
  EXPECT_EQ(refusal(blob, kOfmPrecision, is_u85 ? 0x101 : 0x4041), kNoValue);
  EXPECT_EQ(refusal(blob, kOfmPrecision, is_u85 ? 0x8041 : 0x8141), kNoValue);
  if (is_u85) {
    EXPECT_EQ(refusal(blob, kAccFormat, 0x310), kNoValue);
  }
  // Tables: one that nobody loaded, none that exists, and inside, but not where tables are.
  EXPECT_EQ(refusal(blob, kActivation, is_u85 ? 0x24 : 0x11), "a table is not there");
  EXPECT_EQ(refusal(blob, kActivation, is_u85 ? 0x104 : 0x18), kNoValue);
  EXPECT_EQ(refusal(blob, kActivation, 3), kNoValue);
  EXPECT_EQ(refusal(blob, kDmaTarget, chip.tables() + 0x800), "a table leaves its place");
  EXPECT_EQ(refusal(blob, kDmaTarget, chip.tables() + 1), "a table leaves its place");
  if (chip.tables() != 0) {
    EXPECT_EQ(refusal(blob, kDmaTarget, chip.tables() - 0x100), "a table leaves its place");
  }
  EXPECT_EQ(refusal(blob, kDmaTargetRegion, 0x100), "weights would be written");
}

/// A stream of codes does not pass for one of sums, nor the other way round.
TEST_P(EthosuChain, IsNoLayerOfSums) {
  for (const EthosuResult result : {EthosuResult::kSums, EthosuResult::kCodes}) {
    const Blob blob = first_layer(gelu_chains(), GetParam().target, result);
    ASSERT_FALSE(blob.commands.empty());
    EthosuCommands commands;
    ASSERT_EQ(read_ethosu_commands(blob.commands, &commands), nullptr);
    EXPECT_EQ(check_ethosu_stream(commands, blob.weights.size(), result), nullptr);
    const EthosuResult other =
        result == EthosuResult::kSums ? EthosuResult::kCodes : EthosuResult::kSums;
    EXPECT_NE(check_ethosu_stream(commands, blob.weights.size(), other), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, EthosuChain, ::testing::ValuesIn(kEthosuChips),
                         [](const auto& tested) { return golden_test_name(tested.param.target); });

TEST(EthosuChains, AreTheFeedForwardBlocksAndTheOtherLayersGiveSums) {
  const schema::ModelT model = describe_file(gelu_chains()).model;
  std::set<std::pair<uint32_t, uint32_t>> chains, layers;
  for (const auto& offload : model.offloads) {
    if (offload->steps == 2) {
      EXPECT_EQ(offload->result, schema::OffloadResult::Formula);
      chains.insert({offload->entry, offload->step});
    } else {
      EXPECT_EQ(offload->result, schema::OffloadResult::ExactSums);
      layers.insert({offload->entry, offload->step});
    }
  }
  EXPECT_FALSE(chains.empty());
  EXPECT_FALSE(layers.empty());
  for (const auto& [entry, step] : chains) {
    EXPECT_FALSE(layers.contains({entry, step})) << step;
    EXPECT_FALSE(layers.contains({entry, step + 1})) << step;
  }
}

/// TOSA says nothing of scaled sums beyond 32 bits.
TEST(EthosuChains, AreNotMadeWhereScaledSumsMightNotFit) {
  convert::OffloadOptions options;
  options.chains = true;
  const auto compiler = convert::make_ethosu_compiler("ethos-u65-256", options);
  convert::ChainLayer layer;
  layer.weight = {100, 1, std::vector<int8_t>(100)};
  layer.biases = {1000};
  const float most = 2147483647.0f / (16384.0f * 100 + 1000);
  for (const auto& [factor, fits] :
       {std::pair(0.001f, true), std::pair(0.99f * most, true), std::pair(1.01f * most, false),
        std::pair(INFINITY, false), std::pair(NAN, false)}) {
    layer.factors = {factor};
    EXPECT_EQ(compiler->takes({layer, layer}), fits) << factor;
  }
}

TEST(EthosuChains, ConvertersSayWhatIsMissing) {
  const TemporaryDirectory directory;
  const auto said = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {source_dir() + "/tests/golden/labml_compressive/c1_d32_fullP",
                                      "-o",
                                      directory / "model.oxb",
                                      "--weights",
                                      "int8",
                                      "--no-quality",
                                      "--npu-chains"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_program("oxbow-convert", words);
    EXPECT_NE(result.exit_code, 0);
    return result.err;
  };
  EXPECT_NE(said({}).find("--npu-chains needs --npu"), std::string::npos);
  EXPECT_NE(said({"--npu", "ethos-u55-256"}).find("--activations static is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace oxbow::testing
