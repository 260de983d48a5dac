// Every pack in tests/golden by way of the command line: converted, verified, and cut into pieces.

#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tests/support/cli.h"
#include "tests/support/files.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

const Words kFloat = {"--weights", "f32", "--activations", "f32", "--debug-outputs"};

class CliGolden : public ::testing::TestWithParam<std::string> {
 protected:
  std::string converted(const Words& options) {
    return convert(golden() / GetParam(), directory_ / "m.oxb", options);
  }
  std::string io() const { return (golden() / GetParam() / "io.safetensors").string(); }

  TemporaryDirectory directory_;
};

TEST_P(CliGolden, FloatMatchesTheOriginal) {
  const std::string model = converted(kFloat);
  const CommandResult result = oxbow({"verify", model, io()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out.find("FAIL"), std::string::npos) << result.out;

  const CommandResult strict = oxbow({"verify", model, io(), "--atol", "1e-12"});
  EXPECT_EQ(strict.exit_code, 1);
  expect_one_line(strict, "not as expected");

  const json report = json::parse(oxbow({"verify", model, io(), "--json"}).out);
  EXPECT_TRUE(report["ok"]);
  EXPECT_GT(report["checked"], 0);
  for (const std::string name : report["not_produced"]) {
    EXPECT_NE(why_not_produced(name), nullptr) << name << " was expected and not produced";
  }
}

TEST_P(CliGolden, TheReferenceBackendAndThreadsMatchToo) {
  const std::string model = converted(kFloat);
  EXPECT_EQ(oxbow({"verify", model, io(), "--backend", "reference"}).exit_code, 0);
  EXPECT_EQ(oxbow({"verify", model, io(), "--backend", "cpu", "--threads", "3"}).exit_code, 0);
}

// To the pack's own tolerance: a library may add in any order and fuse, but so may the original.
TEST_P(CliGolden, FloatMatchesTheOriginalOnLibrariesToo) {
  std::string model;
  for (const auto& [name, backend] :
       {std::pair{"xnnpack", OXB_BACKEND_XNNPACK}, std::pair{"acl", OXB_BACKEND_ACL}}) {
    if (oxb_backend_is_built_in(backend) == 0) continue;
    if (model.empty()) model = converted(kFloat);
    const CommandResult result = oxbow({"verify", model, io(), "--backend", name});
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.out << result.err;
  }
  if (model.empty()) GTEST_SKIP() << "no library in this build";
}

TEST_P(CliGolden, Int8IsClose) {
  const std::string model = converted({"--weights", "int8"});
  const CommandResult result = oxbow({"verify", model, io(), "--min-cosine", "0.99"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

/// A stream of random tokens, behind a random text when the model has an encoder.
class Stream {
 public:
  Stream(const oxb::Model& model, uint32_t seed) : model_(model), random_(seed) {
    const oxb_model_info info = model.info();
    last_ = info.entry_count - 1;
    const auto entry = model.entry_info(last_);
    entry_ = *entry;
    // Long enough for several runs and memories that are full, as far as the model goes.
    const uint64_t wanted = 2 * uint64_t{info.max_segment} + 9;
    tokens_ = some_tokens(last_, info.capacity == 0 ? wanted : std::min(wanted, info.capacity));
    if (last_ > 0) text_ = some_tokens(0, std::min<uint64_t>(17, model.entry_info(0)->max_rows));
  }

  /// Only models that promise it, and take tokens.
  bool can_be_cut() const {
    return entry_.any_pieces != 0 && model_.input_info(last_, 0)->type == OXB_TYPE_I32;
  }

  /// All logits, with runs of the lengths that `next` gives.
  template <typename F>
  std::vector<float> logits(F&& next) {
    auto session = oxb::Session::create(model_);
    EXPECT_TRUE(session.ok()) << session.status().text();
    if (!text_.empty()) {
      const oxb::Status status = session->encode(text_);
      EXPECT_TRUE(status.ok()) << status.text();
    }
    std::vector<float> logits(tokens_.size() * entry_.output_width);
    for (size_t done = 0; done < tokens_.size();) {
      const size_t count =
          std::min({size_t{next()}, tokens_.size() - done, size_t{entry_.max_rows}});
      const oxb::Status status = session->run(
          std::span(tokens_).subspan(done, count),
          std::span(logits).subspan(done * entry_.output_width, count * entry_.output_width));
      EXPECT_TRUE(status.ok()) << status.text();
      done += count;
    }
    return logits;
  }

 private:
  std::vector<int32_t> some_tokens(size_t entry, uint64_t count) {
    std::vector<int32_t> tokens(count);
    const uint32_t limit = model_.input_info(entry, 0)->limit;
    for (int32_t& token : tokens) {
      token = limit == 0 ? 0 : static_cast<int32_t>(random_() % limit);
    }
    return tokens;
  }

  const oxb::Model& model_;
  std::mt19937 random_;
  size_t last_ = 0;
  oxb_entry_info entry_ = {};
  std::vector<int32_t> tokens_, text_;
};

TEST_P(CliGolden, HowAStreamIsCutDoesNotMatter) {
  for (const char* weights : {"f32", "int8"}) {
    const std::string file = converted(
        {"--weights", weights, "--activations", std::string(weights) == "f32" ? "f32" : "dynamic"});
    const auto model = oxb::Model::open(file.c_str());
    ASSERT_TRUE(model.ok()) << model.status().text();
    Stream stream(*model, 7);
    if (!stream.can_be_cut()) GTEST_SKIP() << "the pieces of a stream are part of its meaning";
    std::mt19937 random(11);
    const std::vector<float> whole = stream.logits([] { return SIZE_MAX; });
    const std::vector<float> single = stream.logits([] { return size_t{1}; });
    const std::vector<float> pieces = stream.logits([&] { return size_t{1 + random() % 9}; });
    for (const std::vector<float>* other : {&single, &pieces}) {
      size_t differ = 0;
      double worst = 0.0;
      for (size_t i = 0; i < whole.size(); ++i) {
        differ += whole[i] != (*other)[i];
        worst = std::max(worst, std::abs(static_cast<double>(whole[i] - (*other)[i])));
      }
      if (std::string(weights) == "int8") {
        EXPECT_EQ(differ, 0u) << "of " << whole.size() << ", by up to " << worst;
      } else {
        EXPECT_LE(worst, 1e-4);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CliGolden, ::testing::ValuesIn(golden_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

}  // namespace
}  // namespace oxbow::testing
