// Whatever a plug-in answers and whatever a file says of it: words, and no harm.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/testing/temporary_directory.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/npu.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

constexpr const char* kSmall = "labml_compressive/c1_d32_fullP";

const oxb_npu_plugin& example() { return *oxb_npu_plugin_get(OXB_NPU_MAJOR); }

std::string sums_file() {
  return golden_model(kSmall, {"--weights", "int8", "--no-quality", "--npu", "example-i8"});
}

/// What the plug-in answers in place of what the example would; a test sets it.
oxb_npu_caps caps_answer;
oxb_npu_needs needs_answer;

oxb_npu_status describe(oxb_npu_device*, oxb_npu_caps* caps, char*, size_t) {
  *caps = caps_answer;
  return OXB_NPU_OK;
}
oxb_npu_status check(oxb_npu_device*, const oxb_npu_layer*, oxb_npu_needs* needs, char*, size_t) {
  *needs = needs_answer;
  return OXB_NPU_OK;
}
oxb_npu_status load_nothing(oxb_npu_device*, const oxb_npu_layer*, void*, oxb_npu_program** program,
                            char*, size_t) {
  *program = nullptr;
  return OXB_NPU_OK;
}
/// No text: it does not end, and is no UTF-8.
oxb_npu_status fail_without_words(oxb_npu_program*, uint32_t, const void*, void*, char* why,
                                  size_t why_bytes) {
  std::memset(why, 0xff, why_bytes);
  return 77;
}

oxb_npu_caps caps_of_example() {
  oxb_npu_host host = {};
  host.size = sizeof(host);
  oxb_npu_device* device = nullptr;
  char why[128];
  EXPECT_EQ(example().open(&host, &device, why, sizeof(why)), OXB_NPU_OK);
  oxb_npu_caps caps = {};
  caps.size = sizeof(caps);
  EXPECT_EQ(example().describe(device, &caps, why, sizeof(why)), OXB_NPU_OK);
  example().close(device);
  return caps;
}

std::string text_of_open(const oxb_npu_plugin& plugin) {
  oxb::NpuOptions options;
  options.linked = &plugin;
  const auto npu = oxb::Npu::open(options);
  return npu.ok() ? "" : npu.status().text();
}

/// What is said when a session of the file is made on the plug-in.
std::string text_of_session(const oxb_npu_plugin& plugin, const std::string& file) {
  oxb::NpuOptions npu_options;
  npu_options.linked = &plugin;
  const auto npu = oxb::Npu::open(npu_options);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  const auto model = oxb::Model::open(file.c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu->get();
  const auto session = oxb::Session::create(*model, options);
  return session.ok() ? "" : session.status().text();
}

TEST(NpuAnswers, DescriptionsThatCannotBeAreRefused) {
  oxb_npu_plugin plugin = example();
  plugin.describe = describe;
  const auto refusal = [&](const std::function<void(oxb_npu_caps&)>& edit) {
    caps_answer = caps_of_example();
    edit(caps_answer);
    return text_of_open(plugin);
  };
  EXPECT_EQ(refusal([](oxb_npu_caps&) {}), "");
  EXPECT_EQ(refusal([](oxb_npu_caps& caps) { caps.result = 7; }),
            "plug-in 'example': result 7 is unknown");
  EXPECT_EQ(refusal([](oxb_npu_caps& caps) { caps.result = -1; }),
            "plug-in 'example': result -1 is unknown");
  EXPECT_EQ(refusal([](oxb_npu_caps& caps) { caps.alignment = 48; }),
            "plug-in 'example': alignment is 48, expected a power of two up to 4096");
  const std::string other =
      "plug-in 'example': too many targets, or it cannot use the host's memory";
  EXPECT_EQ(refusal([](oxb_npu_caps& caps) { caps.memory = OXB_NPU_MEMORY_DMA_BUF; }), other);
  EXPECT_EQ(refusal([](oxb_npu_caps& caps) { caps.targets = nullptr; }), other);
  EXPECT_EQ(refusal([](oxb_npu_caps& caps) { caps.target_count = SIZE_MAX; }), other);
}

TEST(NpuAnswers, TargetsWithoutNamesAndNamesThatAreNoTextAreNotPrinted) {
  oxb_npu_plugin plugin = example();
  plugin.describe = describe;
  plugin.name = "a\nb\xff";
  caps_answer = caps_of_example();
  const char* targets[] = {nullptr, nullptr};
  caps_answer.targets = targets;
  caps_answer.target_count = 1;
  EXPECT_EQ(
      text_of_session(plugin, sums_file()),
      "the file has no layers that plug-in 'a b?' runs, which is made for nothing: convert it "
      "with --npu");
  targets[0] = "x\x1b[31m\xc3";
  EXPECT_EQ(
      text_of_session(plugin, sums_file()),
      "the file has no layers that plug-in 'a b?' runs, which is made for x [31m?: convert it "
      "with --npu");
}

TEST(NpuAnswers, NeedsThatCannotBeLeaveTheLayersToTheCpu) {
  oxb_npu_plugin plugin = example();
  plugin.check = check;
  const auto refusal = [&](const std::function<void(oxb_npu_needs&)>& edit) {
    needs_answer = {};
    edit(needs_answer);
    return text_of_session(plugin, sums_file());
  };
  const std::string impossible =
      "plug-in 'example' can use none of the file's layers: it asks for impossible sizes";
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.host_bytes = SIZE_MAX; }), impossible);
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.device_bytes = SIZE_MAX / 2; }), impossible);
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.host_alignment = 3; }), impossible);
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.host_alignment = 1 << 20; }), impossible);
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.fast_bytes = 1; }), impossible);
  // Each may be, all together not.
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.host_bytes = SIZE_MAX / 5; }),
            "the layers of an NPU do not fit in memory");
  EXPECT_EQ(refusal([](oxb_npu_needs& needs) { needs.device_bytes = SIZE_MAX / 5; }),
            "the layers of an NPU do not fit in memory");
}

TEST(NpuAnswers, AProgramThatIsNotThereMakesNoSession) {
  oxb_npu_plugin plugin = example();
  plugin.load = load_nothing;
  EXPECT_NE(text_of_session(plugin, sums_file()).find("it does not say why"), std::string::npos);
}

TEST(NpuAnswers, AReasonThatIsNoTextIsMadeOne) {
  oxb_npu_plugin plugin = example();
  plugin.run = fail_without_words;
  oxb::NpuOptions options;
  options.linked = &plugin;
  const auto npu = oxb::Npu::open(options);
  ASSERT_TRUE(npu.ok());
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  EXPECT_TRUE(run_story(sums_file(), {npu->get(), 1}, &report) == run_story(sums_file(), {}));
  EXPECT_NE(report.failed, 0);
  EXPECT_NE(std::string(report.failure).find(": ????"), std::string::npos);
  for (const char* at = report.failure; *at != '\0'; ++at) {
    EXPECT_TRUE(*at >= ' ' && *at < '\x7f') << report.failure;
  }
}

TEST(NpuAnswers, LooserResultsThanThePluginDescribesStayOnTheCpu) {
  oxb_npu_plugin plugin = example();
  plugin.describe = describe;
  caps_answer = caps_of_example();
  const std::string chains = static_model(kSmall, {"--npu", "example-i8-chain"});
  EXPECT_EQ(text_of_session(plugin, chains), "");
  caps_answer.result = OXB_NPU_EXACT_SUMS;
  EXPECT_EQ(text_of_session(plugin, chains),
            "plug-in 'example' can use none of the file's layers: it gives looser results than it "
            "says");
}

/// A record may name any steps that there are, and inspect shows it or says that the file is broken.
TEST(NpuAnswers, InspectSurvivesRecordsOfStepsThatAreNoLayers) {
  const TemporaryDirectory directory;
  const std::string file = sums_file(), edited = directory / "edited.oxb";
  const schema::ModelT graph = describe_file(file).model;
  for (uint32_t entry = 0; entry < graph.entry_points.size(); ++entry) {
    const auto step_count = static_cast<uint32_t>(graph.entry_points[entry]->steps.size());
    for (uint32_t step = 0; step < step_count; ++step) {
      edit_model(file, edited, [&](schema::ModelT& model) {
        model.offloads.resize(2);
        model.offloads[0]->entry = model.offloads[1]->entry = entry;
        model.offloads[0]->step = model.offloads[1]->step = step;
        model.offloads[1]->steps = std::min<uint32_t>(2, step_count - step);
        model.offloads[1]->result = static_cast<schema::OffloadResult>(200);
      });
      const CommandResult result = run_program("oxbow", {"inspect", edited, "--npu", "--json"});
      ASSERT_EQ(result.exit_code, 0) << step << ": " << result.err;
      const nlohmann::json npu = nlohmann::json::parse(result.out).at("npu");
      EXPECT_EQ(npu.at("offloads").at(1).at("result"), "unknown");
    }
  }
}

}  // namespace
}  // namespace oxbow::testing
