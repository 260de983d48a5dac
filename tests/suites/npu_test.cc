// Sessions on an NPU: the bits of the CPU whatever the plug-in does, bytes that are told beforehand, and no lost state
// when it breaks a promise. The plug-in is examples/npu_plugin.c, and that one with faults.

#include "tests/support/npu.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/testing/paths.h"
#include "host/testing/temporary_directory.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/api/oxbow_npu.h"
#include "tests/support/edit_model.h"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

const Words kInt8 = {"--weights", "int8", "--no-quality"};
const Words kExample = {"--weights", "int8", "--no-quality", "--npu", "example-i8"};
constexpr const char* kCompressive = "labml_compressive/c1_d32_fullP";

/// What the faulty plug-in does wrong.
enum class Fault {
  kNone,
  kLoadTakesMore,
  kRunTakesMore,
  kRunFails,
  kWritesBeyond,
  kWrongSum,
  kStale
};
Fault fault = Fault::kNone;
int runs_before_fault = 0;
bool took_more = false;

const oxb_npu_plugin& example() { return *oxb_npu_plugin_get(OXB_NPU_MAJOR); }

bool is_due() { return runs_before_fault-- <= 0; }

oxb_npu_status check(oxb_npu_device* device, const oxb_npu_layer* layer, oxb_npu_needs* needs,
                     char* why, size_t why_bytes) {
  if (fault == Fault::kStale) {
    std::snprintf(why, why_bytes, "made by a compiler of\nyesterday");
    return OXB_NPU_STALE;
  }
  needs->device_bytes = 100;
  return example().check(device, layer, needs, why, why_bytes);
}

size_t taken_bytes(const oxb_npu_program*) {
  return fault == Fault::kLoadTakesMore || took_more ? 101 : 100;
}

oxb_npu_status run(oxb_npu_program* program, uint32_t bucket, const void* input, void* output,
                   char* why, size_t why_bytes) {
  const oxb_npu_status status = example().run(program, bucket, input, output, why, why_bytes);
  if (fault == Fault::kNone || !is_due()) return status;
  auto* sums = static_cast<int32_t*>(output);
  switch (fault) {
    case Fault::kRunTakesMore:
      took_more = true;
      break;
    case Fault::kRunFails:
      std::memset(output, 0x55, 4);
      std::snprintf(why, why_bytes, "the device is on fire");
      return OXB_NPU_FAILED;
    case Fault::kWritesBeyond:
      sums[-1] = 7;
      break;
    case Fault::kWrongSum:
      sums[0] += 1000000;
      break;
    default:
      break;
  }
  return status;
}

oxb_npu_status submit(oxb_npu_program* program, uint32_t bucket, const void* input, void* output,
                      char* why, size_t why_bytes) {
  return run(program, bucket, input, output, why, why_bytes);
}
oxb_npu_status wait(oxb_npu_program*, char*, size_t) { return OXB_NPU_OK; }

/// The example with faults; asynchronous when asked.
oxb_npu_plugin faulty(bool is_asynchronous = false) {
  oxb_npu_plugin plugin = example();
  plugin.check = check;
  plugin.taken_bytes = taken_bytes;
  plugin.run = is_asynchronous ? nullptr : run;
  plugin.submit = submit;
  plugin.wait = wait;
  return plugin;
}

oxb::Npu open_linked(const oxb_npu_plugin& plugin) {
  oxb::NpuOptions options;
  options.linked = &plugin;
  auto npu = oxb::Npu::open(options);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  return std::move(*npu);
}

std::string example_path() { return program_dir() + "/liboxbow_npu_example.so"; }

class Npu : public ::testing::Test {
 protected:
  void SetUp() override {
    fault = Fault::kNone;
    runs_before_fault = 0;
    took_more = false;
  }
};

class NpuGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(NpuGolden, ThePluginGivesTheBitsOfTheCpuForAnyRows) {
  for (const char* rows : {"1,4,16", "16,64"}) {
    Words words = kExample;
    words.insert(words.end(), {"--npu-rows", rows});
    const std::string file = golden_model(GetParam(), words);
    const std::vector<float> expected = run_story(file, {});
    auto npu = oxb::Npu::open(example_path().c_str());
    ASSERT_TRUE(npu.ok()) << npu.status().text();
    for (const uint32_t threads : {1, 3}) {
      oxb_npu_report report = OXB_NPU_REPORT_INIT;
      EXPECT_TRUE(run_story(file, {npu->get(), 1, threads}, &report) == expected) << rows;
      EXPECT_GT(report.runs, 0u);
      EXPECT_EQ(report.cpu_runs, 0u);
      EXPECT_EQ(report.failed, 0) << report.failure;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NpuGolden, ::testing::ValuesIn(npu_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

TEST_F(Npu, AFileWithLayersForAnNpuRunsAsBeforeWithoutOne) {
  EXPECT_TRUE(run_story(golden_model(kCompressive, kExample), {}) ==
              run_story(golden_model(kCompressive, kInt8), {}));
}

TEST_F(Npu, BytesAreToldBeforehandAndNoOthersAreTaken) {
  const auto model = oxb::Model::open(golden_model(kCompressive, kExample).c_str());
  ASSERT_TRUE(model.ok());
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
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
    const oxb_npu_report report = *session->npu_report();
    EXPECT_EQ(report.device_bytes, report.layers * 100u);
    EXPECT_EQ(report.device_bytes + report.host_bytes, plan->device_bytes);
  }
}

TEST_F(Npu, RunsOfFewRowsStayOnTheCpu) {
  const std::string file = golden_model(kCompressive, kExample);
  const oxb_npu_plugin plugin = faulty(true);
  const oxb::Npu npu = open_linked(plugin);
  oxb_npu_report all = OXB_NPU_REPORT_INIT, some = OXB_NPU_REPORT_INIT;
  const std::vector<float> expected = run_story(file, {});
  EXPECT_TRUE(run_story(file, {npu.get(), 1}, &all) == expected);
  EXPECT_TRUE(run_story(file, {npu.get(), 0}, &some) == expected);
  EXPECT_EQ(all.cpu_runs, 0u);
  EXPECT_GT(some.cpu_runs, 0u);
  EXPECT_GT(some.runs, 0u);
  EXPECT_EQ(all.runs, some.runs + some.cpu_runs);
  EXPECT_GE(some.rows, 8 * some.runs);
}

TEST_F(Npu, ReportsOfProgramsWithOlderAndNewerHeaders) {
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  const auto model = oxb::Model::open(golden_model(kCompressive, kExample).c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu.get();
  const auto session = oxb::Session::create(*model, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  for (const size_t size : {offsetof(oxb_npu_report, failure), sizeof(oxb_npu_report) + 24}) {
    std::vector<char> bytes(size, 0x55);
    std::memcpy(bytes.data(), &size, sizeof(size));
    auto* report = reinterpret_cast<oxb_npu_report*>(bytes.data());
    ASSERT_EQ(oxb_session_npu_report(session->get(), report, nullptr), OXB_OK);
    EXPECT_EQ(report->size, size);
    EXPECT_GT(report->layers, 0u);
    for (size_t i = sizeof(oxb_npu_report); i < size; ++i) EXPECT_EQ(bytes[i], 0x55);
  }
}

TEST_F(Npu, AFaultInARunLosesNothingAndIsTold) {
  const std::string file = golden_model(kCompressive, kExample);
  const std::vector<float> expected = run_story(file, {});
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  const std::pair<Fault, const char*> faults[] = {
      {Fault::kRunFails, "the device is on fire"},
      {Fault::kRunTakesMore, "it has taken more memory during a run"},
      {Fault::kWritesBeyond, "it has written outside of its output"}};
  for (const auto& [kind, text] : faults) {
    for (const int before : {0, 1, 5, 17}) {
      fault = kind;
      runs_before_fault = before;
      took_more = false;
      oxb_npu_report report = OXB_NPU_REPORT_INIT;
      EXPECT_TRUE(run_story(file, {npu.get(), 1}, &report) == expected) << text << before;
      EXPECT_NE(report.failed, 0);
      EXPECT_NE(std::string(report.failure).find(text), std::string::npos) << report.failure;
      EXPECT_GT(report.cpu_runs, 0u);
    }
  }
}

TEST_F(Npu, APluginThatTakesMoreThanItAskedForMakesNoSession) {
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  fault = Fault::kLoadTakesMore;
  const auto model = oxb::Model::open(golden_model(kCompressive, kExample).c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu.get();
  const auto session = oxb::Session::create(*model, options);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), OXB_INTERNAL);
  EXPECT_NE(std::string(session.status().text()).find("took 101 bytes"), std::string::npos)
      << session.status().text();
}

TEST_F(Npu, ShadowModeBelievesTheCpuAndTellsTheDifference) {
  const std::string file = golden_model(kCompressive, kExample);
  const std::vector<float> expected = run_story(file, {});
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  EXPECT_TRUE(run_story(file, {npu.get(), 1, 1, true}, &report) == expected);
  EXPECT_GT(report.compared, 0u);
  EXPECT_EQ(report.different, 0u);
  fault = Fault::kWrongSum;
  EXPECT_TRUE(run_story(file, {npu.get(), 1, 1, true}, &report) == expected);
  EXPECT_GT(report.different, 0u);
  EXPECT_GT(report.largest_difference, 0.0f);
  EXPECT_FALSE(run_story(file, {npu.get(), 1}) == expected);
}

TEST_F(Npu, StaleAndDamagedLayersStayOnTheCpu) {
  const TemporaryDirectory directory;
  const std::string file = golden_model(kCompressive, kExample);
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  oxb_npu_report whole = OXB_NPU_REPORT_INIT, report = OXB_NPU_REPORT_INIT;
  const std::vector<float> expected = run_story(file, {npu.get(), 1}, &whole);
  const std::string damaged = directory / "damaged.oxb";
  edit_model(file, damaged, [](schema::ModelT& model) { model.offloads[0]->hash ^= 1; });
  EXPECT_TRUE(run_story(damaged, {npu.get(), 1}, &report) == expected);
  EXPECT_EQ(report.layers, whole.layers - 1);
  fault = Fault::kStale;
  const auto model = oxb::Model::open(file.c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu.get();
  const auto plan = model->plan(options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), OXB_NO_DEVICE);
  EXPECT_NE(std::string(plan.status().text()).find("a compiler of yesterday"), std::string::npos)
      << plan.status().text();
}

TEST_F(Npu, OffloadsThatDoNotFitTheFileAreRefused) {
  const TemporaryDirectory directory;
  const std::string file = golden_model(kCompressive, kExample);
  const auto refusal = [&](const std::function<void(schema::OffloadT&)>& edit) {
    schema::ModelT model = describe_file(file).model;
    edit(*model.offloads[1]);
    return refused_graph(file, model);
  };
  EXPECT_EQ(refusal([](schema::OffloadT& o) { o.step = 10000; }),
            "offload 1: its step does not exist");
  EXPECT_EQ(refusal([](schema::OffloadT& o) { o.entry = 9; }),
            "offload 1: its step does not exist");
  EXPECT_EQ(refusal([](schema::OffloadT& o) { o.rows = 0; }), "offload 1: impossible rows");
  EXPECT_EQ(refusal([](schema::OffloadT& o) { o.weights += 1; }),
            "offload 1: outside of the data region");
  EXPECT_EQ(refusal([](schema::OffloadT& o) { o.command_bytes = UINT64_MAX; }),
            "offload 1: outside of the data region");
  EXPECT_EQ(refusal([](schema::OffloadT& o) { o.target = "a\nb"; }),
            "the target of offload 1: its name is empty or has control characters");
}

TEST_F(Npu, AnOffloadOfAStepWithAnotherShapeIsLeftToTheCpu) {
  const TemporaryDirectory directory;
  const std::string file = golden_model(kCompressive, kExample);
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  const std::vector<float> expected = run_story(file, {});
  const schema::ModelT graph = describe_file(file).model;
  const auto& steps = graph.entry_points[0]->steps;
  const auto shape = [&](uint32_t step) {
    const schema::TensorT& weight = *graph.tensors[steps[step]->inputs.at(1)];
    return std::pair(weight.rows, weight.width);
  };
  const uint32_t own = graph.offloads[0]->step;
  size_t moved_count = 0;
  for (uint32_t step = 0; step < steps.size(); ++step) {
    const bool is_dense = steps[step]->op == schema::OpCode::Linear;
    if (is_dense && shape(step) == shape(own)) continue;
    const std::string moved = directory / "moved.oxb";
    edit_model(file, moved, [&](schema::ModelT& model) { model.offloads[0]->step = step; });
    EXPECT_TRUE(run_story(moved, {npu.get(), 1}) == expected) << step;
    ++moved_count;
  }
  EXPECT_GT(moved_count, 5u);
}

TEST_F(Npu, WhatCannotBeOpenedIsToldPlainly) {
  const auto text_of = [](const char* name) {
    const auto npu = oxb::Npu::open(name);
    EXPECT_FALSE(npu.ok());
    return std::string(npu.status().text());
  };
  EXPECT_NE(text_of("nobody").find("plug-in 'nobody': liboxbow_npu_nobody.so"), std::string::npos);
  EXPECT_NE(text_of("/nowhere/x.so").find("plug-in '/nowhere/x.so'"), std::string::npos);
  EXPECT_EQ(text_of(""), "the NPU options name no plug-in");
  oxb_npu_plugin plugin = example();
  plugin.major = 9;
  oxb::NpuOptions options;
  options.linked = &plugin;
  EXPECT_STREQ(oxb::Npu::open(options).status().text(),
               "plug-in 'linked': it does not have version 1 of the interface");
  plugin = example();
  plugin.unload = nullptr;
  EXPECT_STREQ(oxb::Npu::open(options).status().text(),
               "plug-in 'linked': a function of its table is missing");
  plugin = example();
  const char* key = "speed";
  options.keys = options.values = &key;
  options.key_count = 1;
  EXPECT_STREQ(oxb::Npu::open(options).status().text(),
               "plug-in 'example': there is no setting 'speed'");
}

TEST_F(Npu, AFileWithoutLayersForTheTargetMakesNoSession) {
  const auto model = oxb::Model::open(golden_model(kCompressive, kInt8).c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  EXPECT_EQ(model->plan(options).status().code(), OXB_INVALID_ARGUMENT);
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  options.npu = npu.get();
  const auto plan = model->plan(options);
  EXPECT_EQ(plan.status().code(), OXB_NO_DEVICE);
  EXPECT_STREQ(plan.status().text(),
               "the file has no layers that plug-in 'example' runs, which is made for example-i8 "
               "and others: convert it with --npu");
}

TEST_F(Npu, SessionsKeepTheirNpuAlive) {
  const std::string file = golden_model(kCompressive, kExample);
  const auto model = oxb::Model::open(file.c_str());
  std::optional<oxb::Npu> npu(open_linked(example()));
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu->get();
  options.npu_least_rows = 1;
  auto session = oxb::Session::create(*model, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  npu.reset();
  const std::vector<int32_t> tokens = {1, 2, 3};
  EXPECT_TRUE(session->run(tokens).ok());
  EXPECT_GT(session->npu_report()->runs, 0u);
}

TEST_F(Npu, ASessionThatBorrowsUsesItsLendersNpu) {
  const std::string file = golden_model(kCompressive, kExample);
  const auto model = oxb::Model::open(file.c_str());
  const oxb_npu_plugin plugin = faulty();
  const oxb::Npu npu = open_linked(plugin);
  const auto outputs = [&](oxb_npu* on) {
    oxb::SessionOptions options;
    options.backend = on == nullptr ? OXB_BACKEND_CPU : OXB_BACKEND_NPU;
    options.npu = on;
    options.npu_least_rows = 1;
    auto lender = oxb::Session::create(*model, options);
    EXPECT_TRUE(lender.ok()) << lender.status().text();
    oxb::SessionOptions borrowing;
    borrowing.lender = lender->get();
    auto borrower = oxb::Session::create(*model, borrowing);
    EXPECT_TRUE(borrower.ok()) << borrower.status().text();
    std::vector<float> all, logits(model->info().output_width);
    const std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
    for (oxb::Session* session : {&*lender, &*borrower, &*lender, &*borrower, &*borrower}) {
      EXPECT_TRUE(session->run(tokens, logits).ok());
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  };
  EXPECT_TRUE(outputs(npu.get()) == outputs(nullptr));
}

}  // namespace
}  // namespace oxbow::testing
