// Whole models on libraries that serve dense layers, and files with static scales.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/writer.h"
#include "host/testing/paths.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/model/file_prefix.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

std::string demo_checkpoint() { return testing::source_dir() + "/examples/demo"; }

/// Bits per character of the demo model on unseen text; also what the runs are told beside.
double demo_bits(const std::string& model, const Words& more = {}) {
  Words words = {"eval",    model,  "--text", demo_checkpoint() + "/heldout.txt",
                 "--limit", "6000", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = oxbow(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.exit_code == 0
             ? json::parse(result.out)["models"][0]["bits_per_character"].get<double>()
             : NAN;
}

struct Library {
  const char* name;
  oxb_backend backend;
};

class Backends : public ::testing::TestWithParam<Library> {
 protected:
  void SetUp() override {
    if (oxb_backend_is_built_in(GetParam().backend) == 0) GTEST_SKIP() << "not in this build";
  }
};

/// All logits of a stream cut into runs of different lengths.
std::vector<float> logits_of(TinyModel& bytes, oxb_backend backend, uint32_t threads = 1) {
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  EXPECT_TRUE(model.ok()) << model.status().text();
  oxb_session_options options = oxb::SessionOptions();
  options.backend = backend;
  options.threads = threads;
  auto session = oxb::Session::create(*model, options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  const std::vector<int32_t> tokens = {1, 0, 2, 3, 4};
  std::vector<float> all;
  for (size_t i = 0; i < 30; ++i) {
    const size_t count = 1 + i % 5;
    std::vector<float> logits(count * model->info().vocabulary);
    EXPECT_TRUE(session->run(std::span(tokens).first(count), logits).ok());
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double{a[i]} - b[i]));
  }
  return largest;
}

TEST_P(Backends, AFloatModelGivesTheSameUpToRounding) {
  TinyModel bytes("f32", "f32");
  const std::vector<float> own = logits_of(bytes, OXB_BACKEND_CPU);
  // Logits of about 1, through a few dozen sums of at most 16 products each: some hundred roundings of 6e-8.
  EXPECT_LE(largest_difference(logits_of(bytes, GetParam().backend), own), 1e-5);
  EXPECT_EQ(logits_of(bytes, GetParam().backend, 3), logits_of(bytes, GetParam().backend));
}

TEST_P(Backends, ADynamicInt8ModelKeepsItsBits) {
  TinyModel bytes("int8", "dynamic");
  EXPECT_EQ(logits_of(bytes, GetParam().backend), logits_of(bytes, OXB_BACKEND_CPU));
}

TEST_P(Backends, StaticInt8IsExactWhereTheLibraryGivesSums) {
  TinyModel bytes("int8", "static");
  const std::vector<float> own = logits_of(bytes, OXB_BACKEND_CPU);
  const std::vector<float> library = logits_of(bytes, GetParam().backend);
  if (GetParam().backend == OXB_BACKEND_ACL) {
    EXPECT_EQ(library, own);
  } else {
    // Another rounding to eight bits after each matrix: other numbers, and not far.
    EXPECT_NE(library, own);
    EXPECT_LE(largest_difference(library, own), 0.3);
  }
  EXPECT_EQ(logits_of(bytes, GetParam().backend, 3), library);
}

TEST_P(Backends, WhatTheyTakeIsShown) {
  const TemporaryDirectory directory;
  const std::string model = convert(demo_checkpoint(), directory / "m.oxb", {"--weights", "f32"});
  const CommandResult own = oxbow({"inspect", model, "--json"});
  EXPECT_FALSE(json::parse(own.out).contains("backend_bytes"));
  const CommandResult result = oxbow({"inspect", model, "--json", "--backend", GetParam().name});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json shown = json::parse(result.out);
  // Every matrix is copied: nearly all of the 1.92 million parameters but the embedding.
  EXPECT_GT(shown["backend_bytes"], 6'000'000);
  size_t served = 0, other = 0;
  for (const std::string provider : shown["step_providers"]) {
    EXPECT_TRUE(provider == GetParam().name || provider == "cpu") << provider;
    (provider == "cpu" ? other : served) += 1;
  }
  EXPECT_GT(served, 20u);
  EXPECT_GT(other, 10u);
  const CommandResult text = oxbow({"inspect", model, "--backend", GetParam().name});
  EXPECT_NE(text.out.find("backend memory"), std::string::npos);
  const CommandResult bench = oxbow({"bench", model, "--prefill", "64", "--repeat", "1",
                                     "--profile", "--backend", GetParam().name});
  EXPECT_NE(bench.out.find("backend memory"), std::string::npos) << bench.out;
  EXPECT_NE(bench.out.find(std::string("Linear ") + GetParam().name), std::string::npos)
      << bench.out;
}

TEST_P(Backends, TheDemoModelIsAsGood) {
  const TemporaryDirectory directory;
  const std::string model = convert(demo_checkpoint(), directory / "m.oxb", {"--weights", "f32"});
  // Printed with four digits.
  EXPECT_NEAR(demo_bits(model, {"--backend", GetParam().name}), demo_bits(model), 1.1e-4);
}

TEST_P(Backends, ANonsenseWeightScaleFailsCleanly) {
  TinyModel bytes("int8", "static");
  FilePrefix prefix;
  std::memcpy(&prefix, bytes.data.get(), sizeof(prefix));
  std::memset(bytes.data.get() + prefix.data_offset, 0xff, prefix.data_bytes);
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  ASSERT_TRUE(model.ok()) << "the weights' bytes are looked at only when asked for";
  oxb_session_options options = oxb::SessionOptions();
  options.backend = GetParam().backend;
  const auto session = oxb::Session::create(*model, options);
  if (GetParam().backend == OXB_BACKEND_XNNPACK) {
    ASSERT_FALSE(session.ok());
    EXPECT_NE(std::string(session.status().text()).find("xnnpack cannot make this layer"),
              std::string::npos)
        << session.status().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, Backends,
                         ::testing::Values(Library{"xnnpack", OXB_BACKEND_XNNPACK},
                                           Library{"acl", OXB_BACKEND_ACL}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(BackendNames, OneThatIsNotBuiltInIsRefusedWithTheOptionThatBuildsIt) {
  TinyModel bytes("f32", "f32");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(oxb_backend_is_built_in(OXB_BACKEND_CPU), 1);
  EXPECT_EQ(oxb_backend_is_built_in(static_cast<oxb_backend>(99)), 0);
  for (const auto& [backend, option] : {std::pair{OXB_BACKEND_XNNPACK, "OXBOW_WITH_XNNPACK"},
                                        std::pair{OXB_BACKEND_ACL, "OXBOW_WITH_ACL"}}) {
    oxb_session_options options = oxb::SessionOptions();
    options.backend = backend;
    const auto memory = model->plan(options);
    EXPECT_EQ(memory.ok(), oxb_backend_is_built_in(backend) != 0);
    if (memory.ok()) continue;
    EXPECT_EQ(memory.status().code(), OXB_INVALID_ARGUMENT);
    EXPECT_NE(std::string(memory.status().text()).find(option), std::string::npos);
  }
}

TEST(StaticScales, TheDemoModelLosesLittle) {
  const TemporaryDirectory directory;
  const std::string as_float =
      convert(demo_checkpoint(), directory / "f.oxb", {"--weights", "f32"});
  // Calibrated on other text than it is judged by, the first 6,000 characters.
  const std::vector<std::byte> text = read_bytes(demo_checkpoint() + "/heldout.txt");
  ASSERT_GT(text.size(), 100000u);
  write_bytes(directory / "calibrate.txt", {text.end() - 60000, text.end()});
  const std::string as_static =
      convert(demo_checkpoint(), directory / "s.oxb",
              {"--activations", "static", "--calibrate", directory / "calibrate.txt"});
  // A hundredth of a bit; with a scale for each row it is a thousandth.
  EXPECT_NEAR(demo_bits(as_static), demo_bits(as_float), 0.01);
  EXPECT_NE(oxbow({"inspect", as_static}).out.find("static"), std::string::npos);
}

/// The tiny model with an edited graph.
struct Edited {
  schema::ModelT graph;
  std::vector<std::byte> data;

  Edited() {
    TinyModel bytes("int8", "static");
    FilePrefix prefix;
    std::memcpy(&prefix, bytes.data.get(), sizeof(prefix));
    schema::GetModel(bytes.data.get())->UnPackTo(&graph);
    const std::byte* from = bytes.data.get() + prefix.data_offset;
    data.assign(from, from + prefix.data_bytes);
  }
  oxb_status open(std::string* text) const {
    const std::vector<std::byte> file = convert::assemble_file(graph, data);
    TinyModel aligned;
    aligned.data.reset(
        static_cast<std::byte*>(std::aligned_alloc(64, (file.size() + 63) / 64 * 64)));
    std::memcpy(aligned.data.get(), file.data(), file.size());
    const auto model =
        oxb::Model::open(std::span<const std::byte>(aligned.data.get(), file.size()));
    *text = model.ok() ? "" : model.status().text();
    if (!model.ok()) return model.status().code();
    const auto memory = model->plan();
    *text = memory.ok() ? "" : memory.status().text();
    return memory.status().code();
  }
};

constexpr float kNonsense[] = {0.0f,
                               -0.0f,
                               -0.1f,
                               1e-40f,
                               3e38f,
                               std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};

TEST(StaticScales, NonsenseIsRefused) {
  const Edited good;
  std::string text;
  ASSERT_EQ(good.open(&text), OXB_OK) << text;
  size_t tensors = 0, steps = 0;
  for (const float scale : kNonsense) {
    Edited edited;
    for (const auto& tensor : edited.graph.tensors) {
      if (!tensor->static_scale.has_value()) continue;
      const float before = *tensor->static_scale;
      tensor->static_scale = scale;
      EXPECT_EQ(edited.open(&text), OXB_FILE_CORRUPT) << scale;
      EXPECT_NE(text.find("static_scale must be positive"), std::string::npos) << text;
      tensor->static_scale = before;
      ++tensors;
    }
    for (const auto& step : edited.graph.entry_points[0]->steps) {
      if (step->op != schema::OpCode::Linear) continue;
      auto& options = *step->options.AsLinearOptions();
      const auto before = options.output_scale;
      options.output_scale = scale;
      EXPECT_EQ(edited.open(&text), OXB_FILE_CORRUPT) << scale;
      EXPECT_NE(text.find("output scale"), std::string::npos) << text;
      options.output_scale = before;
      ++steps;
    }
  }
  EXPECT_GT(tensors, 8u);
  EXPECT_GT(steps, 8u);
}

TEST(StaticScales, AreForInt8ActivationsOnly) {
  Edited edited;
  std::string text;
  size_t refused = 0;
  for (const auto& tensor : edited.graph.tensors) {
    const bool may = tensor->kind == schema::TensorKind::Activation &&
                     tensor->type == schema::DataType::I8 && tensor->scale_groups == 1;
    if (may) continue;
    tensor->static_scale = 0.1f;
    EXPECT_EQ(edited.open(&text), OXB_FILE_CORRUPT) << tensor->name;
    EXPECT_NE(text.find("static_scale is for I8 activations"), std::string::npos) << text;
    tensor->static_scale = flatbuffers::nullopt;
    ++refused;
  }
  EXPECT_GT(refused, 10u);
}

}  // namespace
}  // namespace oxbow::testing
