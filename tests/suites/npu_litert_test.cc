// Chains as .tflite graphs through the plug-in for LiteRT: on a library that stands in for it, and, where the environment names them
// (scripts/test npu does), on LiteRT itself and through OpenVINO's dispatch library.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "host/describe.h"
#include "host/testing/paths.h"
#include "host/testing/temporary_directory.h"
#include "runtime/base/hash.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/npu.h"

namespace oxbow::testing {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kBert = "bert/b1_cls";

std::string fake_library() { return program_dir() + "/liboxbow_fake_litert.so"; }

std::string litert_model(const std::string& name) {
  return static_model(name, {"--npu", "litert", "--npu-rows", "1,4,16"});
}

oxb::Expected<oxb::Npu> try_open(const Settings& settings,
                                 std::vector<std::string>* said = nullptr) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : settings) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  oxb::NpuOptions options;
  options.plugin = "litert";
  options.keys = keys.data();
  options.values = values.data();
  options.key_count = keys.size();
  options.log_context = said;
  options.log = [](void* to, oxb_log_level, const char* text) {
    if (to != nullptr) static_cast<std::vector<std::string>*>(to)->push_back(text);
  };
  return oxb::Npu::open(options);
}

oxb_npu_report report_of(const std::string& file, const Settings& settings) {
  auto npu = try_open(settings);
  EXPECT_TRUE(npu.ok()) << npu.status().text();
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  if (!npu.ok()) return report;
  EXPECT_TRUE(run_story(file, {npu->get(), 1, 1, true}, &report) == run_story(file, {}));
  EXPECT_EQ(report.failed, 0) << report.failure;
  EXPECT_EQ(report.cpu_runs, 0u);
  EXPECT_GT(report.compared, 0u);
  return report;
}

class LitertGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(LitertGolden, TheGraphIsTheStatedFormula) {
  EXPECT_EQ(report_of(litert_model(GetParam()), {{"library", fake_library()}}).different, 0u);
}

TEST_P(LitertGolden, OnLitertsCpuCodesAreTheFormulasToTheBit) {
  const char* library = std::getenv("OXBOW_LITERT_LIBRARY");
  if (library == nullptr) GTEST_SKIP() << "OXBOW_LITERT_LIBRARY names no libLiteRt.so";
  const oxb_npu_report report = report_of(litert_model(GetParam()), {{"library", library}});
  RecordProperty("compared", std::to_string(report.compared));
  EXPECT_EQ(report.different, 0u) << "of " << report.compared;
}

TEST_P(LitertGolden, ThroughOpenvinoCodesAreWithinOneOfTheFormulas) {
  const char* library = std::getenv("OXBOW_LITERT_LIBRARY");
  const char* vendor = std::getenv("OXBOW_LITERT_OPENVINO");
  if (library == nullptr || vendor == nullptr) {
    GTEST_SKIP() << "OXBOW_LITERT_OPENVINO names no folder of LiteRT's libraries for OpenVINO";
  }
  const oxb_npu_report report =
      report_of(litert_model(GetParam()), {{"library", library},
                                           {"accelerator", "npu"},
                                           {"compiler", std::string(vendor) + "/compiler"},
                                           {"dispatch", std::string(vendor) + "/dispatch"},
                                           {"vendor", "intel_openvino"},
                                           {"vendor_options", "graph.0.graph_backend = 0\n"}});
  RecordProperty("different", std::to_string(report.different));
  RecordProperty("compared", std::to_string(report.compared));
  EXPECT_LE(report.largest_difference, 1.0f);
}

TEST_P(LitertGolden, CompiledAheadOfTimeByOpenvinoCodesAreWithinOneOfTheFormulas) {
  const char* library = std::getenv("OXBOW_LITERT_LIBRARY");
  const char* vendor = std::getenv("OXBOW_LITERT_OPENVINO");
  const char* tool = std::getenv("OXBOW_LITERT_TOOL");
  if (library == nullptr || vendor == nullptr || tool == nullptr) {
    GTEST_SKIP() << "OXBOW_LITERT_TOOL names no apply_plugin_main of LiteRT";
  }
  const std::string file =
      static_model(GetParam(), {"--npu", "litert-compiled", "--npu-rows", "16", "--litert-tool",
                                std::string(tool) + " --cmd=apply --libs=" + vendor +
                                    "/compiler --soc_manufacturer=IntelOpenVINO --soc_model=LNL "
                                    "--intel_openvino_graph_backends=cpu"});
  const oxb_npu_report report = report_of(file, {{"library", library},
                                                 {"accelerator", "npu"},
                                                 {"dispatch", std::string(vendor) + "/dispatch"}});
  RecordProperty("different", std::to_string(report.different));
  RecordProperty("compared", std::to_string(report.compared));
  EXPECT_LE(report.largest_difference, 1.0f);
}

INSTANTIATE_TEST_SUITE_P(Cases, LitertGolden, ::testing::ValuesIn(static_cases()),
                         [](const auto& tested) {
                           return tested.param.substr(0, tested.param.find('/'));
                         });

TEST(Litert, WhatAToolCompiledRunsOnItsChipAlone) {
  const std::string file = static_model(kBert, {"--npu", "litert-compiled", "--litert-tool",
                                                source_dir() + "/tests/npu/copy_graph 1"});
  const Settings on_chip = {
      {"library", fake_library()}, {"accelerator", "npu"}, {"dispatch", "/anywhere"}};
  EXPECT_EQ(report_of(file, on_chip).different, 0u);
  const auto npu = try_open({{"library", fake_library()}});
  const auto model = oxb::Model::open(file.c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu->get();
  EXPECT_EQ(model->plan(options).status().code(), OXB_NO_DEVICE);
}

TEST(Litert, AToolThatFailsOrIsMissingIsTold) {
  const TemporaryDirectory directory;
  const std::string pack = source_dir() + "/tests/golden/" + kBert;
  const auto said = [&](const Words& more) {
    Words words = {pack,
                   "-o",
                   directory / "none.oxb",
                   "--weights",
                   "int8",
                   "--no-quality",
                   "--activations",
                   "static",
                   "--calibrate",
                   pack + "/io.safetensors",
                   "--npu",
                   "litert-compiled"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("oxbow-convert", words).err;
  };
  EXPECT_NE(said({}).find("--npu litert-compiled needs --litert-tool"), std::string::npos);
  EXPECT_NE(said({"--litert-tool", "/nowhere/tool"}).find("/nowhere/tool cannot be started"),
            std::string::npos);
  EXPECT_NE(said({"--litert-tool", source_dir() + "/tests/npu/copy_graph 0"})
                .find("copy_graph failed: this chip is not known"),
            std::string::npos);
}

TEST(Litert, WhatItBreaksIsSaidWhenItIsOpened) {
  std::vector<std::string> said;
  const auto npu = try_open({{"library", fake_library()}}, &said);
  ASSERT_TRUE(npu.ok()) << npu.status().text();
  EXPECT_EQ(said, (std::vector<std::string>{"runs take memory from the system",
                                            "what a file holds for it is not verified",
                                            "it takes memory that no plan tells"}));
}

TEST(Litert, WhatCannotBeOpenedIsToldPlainly) {
  const auto text_of = [](const Settings& settings) {
    const auto npu = try_open(settings);
    EXPECT_FALSE(npu.ok());
    return std::string(npu.status().text());
  };
  EXPECT_NE(text_of({{"library", "/nowhere/libLiteRt.so"}}).find("/nowhere/libLiteRt.so"),
            std::string::npos);
  EXPECT_EQ(text_of({{"library", program_dir() + "/liboxbow_npu_example.so"}}),
            "plug-in 'litert': the library has no LiteRtCreateEnvironment");
  EXPECT_EQ(text_of({{"speed", "9"}}),
            "plug-in 'litert': there is no setting 'speed'; there are library, accelerator, "
            "compiler, dispatch, vendor and vendor_options");
  EXPECT_EQ(text_of({{"accelerator", "tpu"}}),
            "plug-in 'litert': accelerator is 'tpu', expected cpu or npu");
  EXPECT_EQ(text_of({{"vendor", "x"}}),
            "plug-in 'litert': vendor and vendor_options belong together");
}

TEST(Litert, WithoutAVendorsCompilerThereIsNoSession) {
  const auto npu = try_open({{"library", fake_library()}, {"accelerator", "npu"}});
  ASSERT_TRUE(npu.ok()) << npu.status().text();
  const auto model = oxb::Model::open(litert_model(kBert).c_str());
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_NPU;
  options.npu = npu->get();
  const auto session = oxb::Session::create(*model, options);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), OXB_NO_DEVICE);
  EXPECT_NE(std::string(session.status().text())
                .find("LiteRT cannot compile the graph: its status is 504"),
            std::string::npos)
      << session.status().text();
}

// Somebody who means harm writes the hash anew.
TEST(Litert, EveryByteOfAHeaderChangedIsRefused) {
  const TemporaryDirectory directory;
  const std::string file = litert_model(kBert);
  const auto npu = try_open({{"library", fake_library()}});
  ASSERT_TRUE(npu.ok());
  const schema::ModelT graph = describe_file(file).model;
  const schema::OffloadT& first = *graph.offloads.front();
  oxb_npu_report whole = OXB_NPU_REPORT_INIT, report = OXB_NPU_REPORT_INIT;
  (void)run_story(file, {npu->get(), 1}, &whole);
  std::vector<std::byte> bytes = read_bytes(file);
  std::byte* data = bytes.data() + read_prefix(bytes).data_offset;
  for (uint64_t i = 0; i < first.command_bytes; ++i) {
    data[first.commands + i] ^= std::byte{1};
    const std::string changed = directory / "changed.oxb", repaired = directory / "repaired.oxb";
    write_bytes(changed, bytes);
    edit_model(changed, repaired, [&](schema::ModelT& model) {
      for (auto& offload : model.offloads) {
        offload->hash = hash_bytes(data + offload->weights, offload->weight_bytes,
                                   hash_bytes(data + offload->commands, offload->command_bytes));
      }
    });
    (void)run_story(repaired, {npu->get(), 1}, &report);
    EXPECT_LT(report.layers, whole.layers) << i;
    data[first.commands + i] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace oxbow::testing
