// Chains: several dense layers as one run of a plug-in, with int8 codes between them. What the plug-in gives is the stated formula
// to the bit, whatever the file says about a chain does no harm, and a fault leaves all to the CPU.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/testing/temporary_directory.h"
#include "runtime/base/hash.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/npu.h"

namespace oxbow::testing {
namespace {

constexpr const char* kBert = "bert/b1_cls";
constexpr const char* kChain = "example-i8-chain";

std::string chain_model(const std::string& name, const std::string& rows) {
  return static_model(name, {"--npu", kChain, "--npu-rows", rows});
}

int runs_before_fault = -1;
/// Added to the first code of each run.
int8_t wrong_by = 0;

oxb_npu_status run(oxb_npu_program* program, uint32_t bucket, const void* input, void* output,
                   char* why, size_t why_bytes) {
  if (runs_before_fault == 0) {
    std::memset(output, 0x55, 4);
    std::snprintf(why, why_bytes, "the device is on fire");
    return OXB_NPU_FAILED;
  }
  --runs_before_fault;
  const oxb_npu_status status =
      oxb_npu_plugin_get(OXB_NPU_MAJOR)->run(program, bucket, input, output, why, why_bytes);
  int8_t& first = *static_cast<int8_t*>(output);
  first = static_cast<int8_t>(first + (first > 0 ? -wrong_by : wrong_by));
  return status;
}

/// The example, which fails after so many runs; -1: never.
oxb::Npu open_failing_after(int runs) {
  static oxb_npu_plugin plugin;
  plugin = *oxb_npu_plugin_get(OXB_NPU_MAJOR);
  plugin.run = run;
  runs_before_fault = runs;
  oxb::NpuOptions options;
  options.linked = &plugin;
  auto npu = oxb::Npu::open(options);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  return std::move(*npu);
}
oxb::Npu open_example() { return open_failing_after(-1); }

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

size_t longest_chain(const std::string& file) {
  size_t longest = 0;
  for (const auto& offload : describe_file(file).model.offloads) {
    longest = std::max<size_t>(longest, offload->steps);
  }
  return longest;
}

class NpuChain : public ::testing::TestWithParam<std::string> {};

TEST_P(NpuChain, ThePluginGivesTheStatedFormulaToTheBit) {
  for (const char* rows : {"1,4,16", "16,64"}) {
    const std::string file = chain_model(GetParam(), rows);
    const oxb::Npu npu = open_example();
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    // Shadow mode believes the CPU.
    EXPECT_TRUE(run_story(file, {npu.get(), 1, 1, true}, &report) == run_story(file, {}));
    EXPECT_EQ(report.failed, 0) << report.failure;
    EXPECT_GT(report.compared, 0u);
    EXPECT_EQ(report.different, 0u) << report.largest_difference << " in " << report.largest_step;
    EXPECT_EQ(report.cpu_runs, 0u);
  }
}

TEST_P(NpuChain, ResultsDoNotDependOnBucketsAndThreadsAndAreNearTheCpus) {
  const oxb::Npu npu = open_example();
  const std::string file = chain_model(GetParam(), "1,4,16");
  const std::vector<float> expected = run_story(file, {npu.get(), 1});
  EXPECT_TRUE(run_story(file, {npu.get(), 1, 3}) == expected);
  EXPECT_TRUE(run_story(chain_model(GetParam(), "16,64"), {npu.get(), 1}) == expected);
  const std::vector<float> on_cpu = run_story(file, {});
  EXPECT_FALSE(expected == on_cpu);
  EXPECT_GT(cosine(expected, on_cpu), 0.98);
}

TEST(NpuChains, ShadowModeTellsWrongCodes) {
  const oxb::Npu npu = open_example();
  const std::string file = chain_model(kBert, "16,64");
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  wrong_by = 3;
  EXPECT_TRUE(run_story(file, {npu.get(), 1, 1, true}, &report) == run_story(file, {}));
  wrong_by = 0;
  EXPECT_GE(report.different, report.runs);
  EXPECT_EQ(report.largest_difference, 3.0f);
}

INSTANTIATE_TEST_SUITE_P(Cases, NpuChain, ::testing::ValuesIn(static_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

TEST(NpuChains, AFeedForwardBlockIsOneChain) {
  EXPECT_EQ(longest_chain(chain_model(kBert, "16,64")), 2u);
  EXPECT_EQ(longest_chain(chain_model("labml_compressive/c1_d32_fullP", "16,64")), 2u);
}

TEST(NpuChains, BytesAreToldBeforehandAndNoOthersAreTaken) {
  const auto model = oxb::Model::open(chain_model(kBert, "1,4,16").c_str());
  ASSERT_TRUE(model.ok());
  const oxb::Npu npu = open_example();
  for (const bool shadow : {false, true}) {
    oxb::SessionOptions options;
    options.backend = OXB_BACKEND_NPU;
    options.npu = npu.get();
    options.npu_shadow = shadow ? 1 : 0;
    const auto plan = model->plan(options);
    ASSERT_TRUE(plan.ok()) << plan.status().text();
    const auto session = oxb::Session::create(*model, options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    EXPECT_EQ(session->backend_bytes(), plan->device_bytes);
  }
}

// The first layer's rows take several runs: after a fault in the second nothing of the first may be left.
TEST(NpuChains, AFaultLeavesAllToTheCpu) {
  const std::string file = chain_model(kBert, "1,4,16");
  const std::vector<float> expected = run_story(file, {});
  for (const int runs : {0, 1}) {
    const oxb::Npu npu = open_failing_after(runs);
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    EXPECT_TRUE(run_story(file, {npu.get(), 17}, &report) == expected) << runs;
    EXPECT_NE(report.failed, 0);
    EXPECT_EQ(report.runs, 0u);
    EXPECT_GT(report.cpu_runs, 0u);
  }
  for (const int runs : {5, 17}) {
    const oxb::Npu npu = open_failing_after(runs);
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    EXPECT_GT(cosine(run_story(file, {npu.get(), 1}, &report), expected), 0.98) << runs;
    EXPECT_NE(report.failed, 0);
  }
}

/// Where the offloads of the only chain that is left are moved to.
std::string with_chain(const TemporaryDirectory& directory, const std::string& file,
                       const std::function<void(schema::OffloadT&)>& edit) {
  const std::string edited = directory / "edited.oxb";
  edit_model(file, edited, [&](schema::ModelT& model) {
    std::erase_if(model.offloads, [](const auto& offload) { return offload->steps != 2; });
    for (auto& offload : model.offloads) edit(*offload);
  });
  return edited;
}

TEST(NpuChains, StepsThatAreNoChainStayOnTheCpu) {
  const TemporaryDirectory directory;
  const std::string file = chain_model(kBert, "16,64");
  const std::vector<float> expected = run_story(file, {});
  const oxb::Npu npu = open_example();
  const schema::ModelT graph = describe_file(file).model;
  const auto step_count = static_cast<uint32_t>(graph.entry_points[0]->steps.size());
  size_t refused = 0;
  for (uint32_t step = 0; step + 2 <= step_count; ++step) {
    for (const uint32_t count : {2u, step_count - step}) {
      const std::string edited = with_chain(directory, file, [&](schema::OffloadT& offload) {
        offload.step = step;
        offload.steps = count;
      });
      const auto model = oxb::Model::open(edited.c_str());
      ASSERT_TRUE(model.ok()) << model.status().text();
      oxb::SessionOptions options;
      options.backend = OXB_BACKEND_NPU;
      options.npu = npu.get();
      const auto plan = model->plan(options);
      if (!plan.ok()) {
        EXPECT_EQ(plan.status().code(), OXB_NO_DEVICE) << plan.status().text();
        ++refused;
        continue;
      }
      // Another chain of this shape: wrong numbers and no more.
      EXPECT_EQ(run_story(edited, {npu.get(), 1}).size(), expected.size());
    }
  }
  EXPECT_GT(refused, step_count);
}

TEST(NpuChains, AStepThatTwoHaveIsTheFirstOnes) {
  const TemporaryDirectory directory;
  const std::string file = chain_model(kBert, "16,64");
  const oxb::Npu npu = open_example();
  const auto count_layers = [&](const std::string& path) {
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    (void)run_story(path, {npu.get(), 1, 1, true}, &report);
    EXPECT_EQ(report.different, 0u);
    return report.layers;
  };
  const std::string doubled = directory / "doubled.oxb";
  edit_model(file, doubled, [&](schema::ModelT& model) {
    const size_t count = model.offloads.size();
    for (size_t i = 0; i < count; ++i) {
      if (model.offloads[i]->steps != 2) continue;
      auto inner = std::make_unique<schema::OffloadT>(*model.offloads[i]);
      ++inner->step;
      inner->steps = 1;
      model.offloads.insert(model.offloads.begin(), std::move(inner));
    }
  });
  EXPECT_EQ(count_layers(doubled), count_layers(file));
}

TEST(NpuChains, StepsThatDoNotExistAreRefused) {
  const std::string file = chain_model(kBert, "16,64");
  const auto refusal = [&](uint32_t steps) {
    schema::ModelT model = describe_file(file).model;
    model.offloads[1]->steps = steps;
    return refused_graph(file, model);
  };
  EXPECT_EQ(refusal(0), "offload 1: its step does not exist");
  EXPECT_EQ(refusal(10000), "offload 1: its step does not exist");
  EXPECT_EQ(refusal(UINT32_MAX), "offload 1: its step does not exist");
}

// Each in memory of its exact size, so that the sanitizers see what is read beyond it.
TEST(NpuChains, EveryByteOfItsCommandsChangedIsRefusedOrHarmless) {
  const std::string file = chain_model(kBert, "1,4,16");
  const std::vector<std::byte> bytes = read_bytes(file);
  const std::byte* data = bytes.data() + read_prefix(bytes).data_offset;
  const schema::ModelT graph = describe_file(file).model;
  const oxb_npu_plugin& plugin = *oxb_npu_plugin_get(OXB_NPU_MAJOR);
  oxb_npu_host host = {};
  host.size = sizeof(host);
  oxb_npu_device* device = nullptr;
  char why[128] = {};
  ASSERT_EQ(plugin.open(&host, &device, why, sizeof(why)), OXB_NPU_OK);
  size_t refused = 0, ran = 0;
  const auto try_one = [&](const schema::OffloadT& offload, const std::vector<std::byte>& commands,
                           const std::vector<std::byte>& weights) {
    const auto& steps = graph.entry_points[offload.entry]->steps;
    oxb_npu_bucket bucket = {offload.rows,  0, commands.data(), commands.size(), weights.data(),
                             weights.size()};
    oxb_npu_layer layer = {};
    layer.size = sizeof(layer);
    layer.target = kChain;
    layer.depth = graph.tensors[steps[offload.step]->inputs[0]]->width;
    layer.channels = graph.tensors[steps[offload.step + offload.steps - 1]->outputs[0]]->width;
    layer.result = OXB_NPU_FORMULA;
    layer.bucket_count = 1;
    layer.buckets = &bucket;
    oxb_npu_needs needs = {};
    needs.size = sizeof(needs);
    if (plugin.check(device, &layer, &needs, why, sizeof(why)) != OXB_NPU_OK) {
      ++refused;
      return;
    }
    std::vector<std::byte> memory(needs.host_bytes), x(size_t{offload.rows} * layer.depth),
        y(size_t{offload.rows} * layer.channels);
    oxb_npu_program* program = nullptr;
    ASSERT_EQ(plugin.load(device, &layer, memory.data(), &program, why, sizeof(why)), OXB_NPU_OK);
    EXPECT_EQ(plugin.run(program, 0, x.data(), y.data(), why, sizeof(why)), OXB_NPU_OK);
    plugin.unload(program);
    ++ran;
  };
  for (const auto& offload : graph.offloads) {
    if (offload->steps != 2) continue;
    const std::vector<std::byte> commands(data + offload->commands,
                                          data + offload->commands + offload->command_bytes);
    const std::vector<std::byte> weights(data + offload->weights,
                                         data + offload->weights + offload->weight_bytes);
    for (size_t i = 0; i < commands.size(); ++i) {
      for (const int flip : {1, 0x80, 0xff}) {
        std::vector<std::byte> changed = commands;
        changed[i] ^= static_cast<std::byte>(flip);
        try_one(*offload, changed, weights);
      }
    }
    for (size_t size = 0; size < commands.size(); ++size) {
      try_one(*offload, {commands.begin(), commands.begin() + static_cast<ptrdiff_t>(size)},
              weights);
    }
    // Factors may be anything: not numbers, infinite.
    for (size_t i = 0; i < weights.size(); i += 1 + weights.size() / 500) {
      std::vector<std::byte> changed = weights;
      changed[i] ^= std::byte{0xff};
      try_one(*offload, commands, changed);
      changed.resize(i);
      try_one(*offload, commands, changed);
    }
    break;
  }
  plugin.close(device);
  EXPECT_GT(refused, 400u);
  EXPECT_GT(ran, 400u);
}

}  // namespace
}  // namespace oxbow::testing
