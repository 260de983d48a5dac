// What the command line does with models that do not simply continue a text.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

class CliTasks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    translator_ = golden_model("marian/ma1", {});
    classifier_ = golden_model("bert/b1_cls", {});
    filler_ = golden_model("bert/b2_mlm", {});
    encoder_ = golden_model("roformer/ro1", {});
    generator_ = golden_model("gpt2/g1_tied", {});
    floats_ = golden_model("sparse_masks/sp1_fixed", {});
  }
  static void TearDownTestSuite() { delete directory_; }

  /// Good, and what it printed.
  static std::string good(const Words& words) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  static void refused(const Words& words, int code, const std::string& part) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, code) << result.out << result.err;
    expect_one_line(result, part);
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string translator_, classifier_, filler_, encoder_, generator_, floats_;
};

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(CliTasks, ATranslatorTranslatesGreedilyAndWithBeams) {
  const std::string greedy = good({"run", translator_, "--ids", "5,6,7,0", "--tokens", "6"});
  EXPECT_EQ(greedy, good({"run", translator_, "--ids", "5,6,7,0", "--tokens", "6"}));
  EXPECT_EQ(lines_of(greedy), 1u);
  EXPECT_EQ(lines_of(good({"run", translator_, "--ids", "5,6,7,0", "--beams", "3"})), 1u);
  const std::string two =
      good({"run", translator_, "--ids", "5,6,7,0", "--beams", "3", "--n-best", "2"});
  EXPECT_EQ(lines_of(two), 2u) << two;
  EXPECT_TRUE(two.starts_with("-")) << two;  // The logarithm of a probability.
  refused({"run", translator_, "--ids", "5", "--beams", "2", "--n-best", "3"}, 2, "--n-best");
  refused({"run", translator_, "--prompt", "a"}, 3, "no tokenizer");
  refused({"run", translator_, "--ids", "5,999"}, 2, "'999' is not a token");
}

TEST_F(CliTasks, AClassifierPrintsItsClassesTheLikeliestFirst) {
  const std::string out = good({"run", classifier_, "--ids", "1,2,3"});
  EXPECT_EQ(lines_of(out), 3u) << out;
  EXPECT_NE(out.find("LABEL_"), std::string::npos) << out;
  EXPECT_GT(std::stod(out), std::stod(out.substr(out.find('\n') + 1))) << out;
  refused({"run", classifier_, "--ids", ""}, 2, "--prompt, --file or --ids");
  std::string long_text = "1";
  for (int i = 0; i < 2000; ++i) long_text += ",1";
  refused({"run", classifier_, "--ids", long_text}, 3, "2001 tokens");
}

TEST_F(CliTasks, MasksAreFilledWithTheLikeliestTokens) {
  const std::string out = good({"run", filler_, "--ids", "1,2,3,2", "--mask", "2", "--top-k", "3"});
  EXPECT_EQ(lines_of(out), 8u) << out;
  EXPECT_NE(out.find("token 1\n"), std::string::npos) << out;
  EXPECT_NE(out.find("token 3\n"), std::string::npos) << out;
  refused({"run", filler_, "--ids", "1,2,3"}, 2, "--mask ID");
  refused({"run", filler_, "--ids", "1,2,3", "--mask", "9"}, 3, "no token 9");
}

TEST_F(CliTasks, HiddenStatesAreNothingToPrint) {
  refused({"run", encoder_, "--ids", "1,2,3"}, 3, "oxb_session_run_entry");
  refused({"run", floats_, "--ids", "1,2,3"}, 2, "--input FILE");
}

TEST_F(CliTasks, AFullStreamEndsTheTextAndIsTold) {
  const CommandResult result = oxbow({"run", generator_, "--ids", "1,2", "--tokens", "500"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("the stream is full: the model takes 64 tokens"), std::string::npos)
      << result.err;
  std::string long_text = "1";
  for (int i = 0; i < 70; ++i) long_text += ",1";
  refused({"run", generator_, "--ids", long_text}, 3, "--ring");
}

TEST_F(CliTasks, BenchMeasuresWhatThereIs) {
  const json encoder = json::parse(good({"bench", encoder_, "--json"}));
  EXPECT_TRUE(encoder.contains("prefill"));
  EXPECT_TRUE(!encoder.contains("decode") || encoder["decode"].is_null());
  for (const std::string& model : {translator_, generator_}) {
    const json both = json::parse(good({"bench", model, "--json"}));
    EXPECT_EQ(both["decode"]["tokens"], 128) << model;
    EXPECT_GT(both["prefill"]["tokens_per_second"], 0.0) << model;
  }
  EXPECT_NE(good({"bench", translator_, "--profile"}).find("Attention"), std::string::npos);
  EXPECT_NE(good({"bench", classifier_, "--profile"}).find("Attention"), std::string::npos);
  const json two_entries = json::parse(good({"bench", translator_, "--roofline", "--json"}));
  const json graph = json::parse(good({"inspect", translator_, "--json"}));
  json all_steps = json::array();
  for (const json& entry : graph["entry_points"]) {
    for (const json& step : entry["steps"]) all_steps.push_back(step);
  }
  // Of a translator the prompt is the encoder's and tokens are the decoder's: no step is in both.
  for (const json& read : two_entries["roofline"]["prefill"]["steps"]) {
    for (const json& said : two_entries["roofline"]["decode"]["steps"]) {
      EXPECT_NE(read["step"], said["step"]);
    }
  }
  for (const char* way : {"prefill", "decode"}) {
    size_t counted = 0;
    for (const json& step : two_entries["roofline"][way]["steps"]) {
      const json& told = all_steps.at(size_t{step["step"]});
      EXPECT_EQ(step["output"], told["outputs"][0]);
      counted += step.contains("macs");
      // Attention of a text that is shorter than it could be is not.
      EXPECT_TRUE(!step.contains("macs") || told["category"] == "matrix") << step << told;
    }
    EXPECT_GT(counted, 4u) << way;
  }
  const json one_entry = json::parse(good({"bench", classifier_, "--roofline", "--json"}));
  EXPECT_TRUE(one_entry["roofline"].contains("prefill"));
  EXPECT_FALSE(one_entry["roofline"].contains("decode"));
  EXPECT_NE(good({"bench", floats_}).find("prefill"), std::string::npos);
  refused({"bench", encoder_, "--decode", "3"}, 3, "--prefill N");
  refused({"bench", generator_, "--stream", "100"}, 3, "--ring");
}

TEST_F(CliTasks, EvalCountsTheClassesThatAreRight) {
  const std::string file = (*directory_ / "texts.txt").string();
  const json first = [&] {
    std::ofstream(file) << "1,2,3\n4,5\n\n7,7,7\r\n";
    return json::parse(good({"eval", classifier_, "--classify", file, "--ids", "--json"}));
  }();
  ASSERT_EQ(first["texts"], 3);
  EXPECT_FALSE(first.contains("accuracy"));
  const std::string name = first["lines"][0]["class"];
  std::ofstream(file) << "1,2,3\t" << name << "\n4,5\t"
                      << first["lines"][1]["class"].get<std::string>() << "\n1,2,3\t"
                      << (name == "LABEL_0" ? "1" : "0") << "\n4\n";
  const std::string out = good({"eval", classifier_, "--classify", file, "--ids"});
  EXPECT_NE(out.find("accuracy 0.6667 (2 of 3)"), std::string::npos) << out;
  EXPECT_NE(out.find("(wrong)"), std::string::npos) << out;
  std::ofstream(file) << "1,2,3\n";
  EXPECT_NE(good({"eval", classifier_, "--classify", file, "--ids"}).find("\n1 text, "),
            std::string::npos);
  std::ofstream(file) << "1,2,3\tnonsense\n";
  refused({"eval", classifier_, "--classify", file, "--ids"}, 3, "'nonsense' is not a class");
  refused({"eval", classifier_, "--classify", file}, 3, "no tokenizer");
  refused({"eval", generator_, "--classify", file, "--ids"}, 3, "no classes");
  refused({"eval", classifier_, "--text", file}, 3, "--classify FILE");
  refused({"eval", classifier_}, 2, "--text FILE, or --classify FILE");
}

TEST_F(CliTasks, CtrlCKeepsTheClassesThatWereTold) {
  const std::string file = (*directory_ / "many.txt").string();
  std::ofstream many(file);
  for (int i = 0; i < 2'000'000; ++i) many << "1,2,3\t0\n";
  many.close();
  PipedProgram program("oxbow", {"eval", classifier_, "--classify", file, "--ids", "--json"});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  program.interrupt();
  const CommandResult result = program.finish();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  const json report = json::parse(result.out);
  EXPECT_TRUE(report["interrupted"]);
  EXPECT_GT(report["texts"], 0);
  EXPECT_EQ(report["lines"].size(), report["texts"]);
}

TEST_F(CliTasks, InspectTellsTaskEntryPointsAndInputs) {
  const json described = json::parse(good({"inspect", translator_, "--json"}));
  EXPECT_EQ(described["task"], "translate");
  ASSERT_EQ(described["entry_points"].size(), 2u);
  EXPECT_EQ(described["entry_points"][0]["inputs"][1]["name"], "attention_mask");
  EXPECT_TRUE(described["entry_points"][0]["starts"]);
  EXPECT_TRUE(described["entry_points"][1]["any_pieces"]);
  const std::string text = good({"inspect", classifier_});
  EXPECT_NE(text.find("token_type_ids"), std::string::npos) << text;
  EXPECT_NE(text.find("LABEL_1"), std::string::npos) << text;
  EXPECT_NE(good({"inspect", generator_}).find("a stream of 64 tokens"), std::string::npos);
}

}  // namespace
}  // namespace oxbow::testing
