// From a folder as a model hub lays it out to text, in two commands.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/hub_folder.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Hub : public ::testing::Test {
 protected:
  /// Converts a folder without any option and returns what was said on the way.
  std::string convert_folder(const std::string& name) {
    make_hub_folder(name, directory_ / name);
    model_ = (directory_ / (name + ".oxb")).string();
    const CommandResult result =
        run_program("oxbow-convert", {(directory_ / name).string(), "-o", model_});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  }
  std::string good(const Words& words) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  json tokens(const std::string& text) {
    return json::parse(good({"tokenize", model_, "--prompt", text, "--json"}));
  }

  TemporaryDirectory directory_;
  std::string model_;
};

/// Text for people: whole characters, and some of them.
void expect_text(const std::string& text) {
  EXPECT_FALSE(text.empty());
  EXPECT_NO_THROW(json(text).dump()) << "not valid UTF-8";
}

TEST_F(Hub, Gpt2WritesText) {
  const std::string notes = convert_folder("gpt2");
  EXPECT_THAT(notes, HasSubstr("tokenizer: ByteBpe"));
  EXPECT_THAT(notes, HasSubstr("vocab.json, merges.txt"));
  EXPECT_THAT(notes, Not(HasSubstr("warning")));
  const std::string text = good({"run", model_, "--prompt", "The river", "--tokens", "20"});
  expect_text(text);
  EXPECT_EQ(text, good({"run", model_, "--prompt", "The river", "--tokens", "20"}));
}

TEST_F(Hub, BertFillsMasks) {
  const std::string notes = convert_folder("bert");
  EXPECT_THAT(notes, HasSubstr("tokenizer: WordPiece"));
  const std::string text = good({"run", model_, "--prompt", "The [MASK] is long."});
  expect_text(text);
  const json tokens = this->tokens("The [MASK]");
  EXPECT_EQ(tokens["tokens"].front()["text"], "[CLS]");
  EXPECT_EQ(tokens["tokens"].back()["text"], "[SEP]");
}

TEST_F(Hub, LlamaWritesTextAndAnswers) {
  const std::string notes = convert_folder("llama");
  EXPECT_THAT(notes, HasSubstr("tokenizer: Bpe"));
  EXPECT_THAT(notes, HasSubstr("[INST]"));
  EXPECT_THAT(notes, HasSubstr("generation_config.json: tokens are sampled as it says"));
  expect_text(good({"run", model_, "--prompt", "The river", "--tokens", "20"}));
  expect_text(good({"run", model_, "--chat", "--prompt", "Where is it?", "--tokens", "10"}));
  EXPECT_EQ(tokens("The river")["tokens"].front()["text"], "<s>");
  // The folder says that it is not legacy: a text gets a space, and what follows a special token does not.
  const json parts = tokens("y<s>y");
  EXPECT_EQ(parts["tokens"][1]["text"], "\u2581y");
  EXPECT_EQ(parts["tokens"][3]["text"], "y");
}

TEST_F(Hub, MarianTranslates) {
  const std::string notes = convert_folder("marian");
  EXPECT_THAT(notes, HasSubstr("source.spm, target.spm, vocab.json"));
  expect_text(good({"run", model_, "--prompt", "The river is long.", "--tokens", "12"}));
  EXPECT_EQ(tokens("The river")["tokens"].back()["text"], "</s>");
}

TEST_F(Hub, T5TakesATextToAText) {
  const std::string notes = convert_folder("t5");
  EXPECT_THAT(notes, HasSubstr("tokenizer: Unigram"));
  expect_text(good({"run", model_, "--prompt", "translate: the river", "--tokens", "12"}));
  const json tokens = this->tokens("the <extra_id_0> river");
  EXPECT_EQ(tokens["tokens"].back()["text"], "</s>");
  bool found = false;
  for (const json& token : tokens["tokens"]) found = found || token["text"] == "<extra_id_0>";
  EXPECT_TRUE(found) << tokens.dump();
}

TEST_F(Hub, ATokenizerThatCannotBeUsedIsNamedAndCanBeLeftOut) {
  make_hub_folder("gpt2", directory_ / "gpt2");
  std::ofstream(directory_ / "gpt2/merges.txt") << "#version: 0.2\nNo Such\n";
  const std::string folder = (directory_ / "gpt2").string();
  const std::string out = (directory_ / "out.oxb").string();
  const CommandResult refused = run_program("oxbow-convert", {folder, "-o", out});
  EXPECT_EQ(refused.exit_code, 3);
  expect_one_line(refused, "merges.txt");
  EXPECT_THAT(refused.err, HasSubstr("--tokenizer none"));
  EXPECT_FALSE(std::filesystem::exists(out));
  const CommandResult without =
      run_program("oxbow-convert", {folder, "-o", out, "--tokenizer", "none"});
  EXPECT_EQ(without.exit_code, 0) << without.err;
}

TEST_F(Hub, ATokenizerOfAnotherModelIsWarnedOf) {
  make_hub_folder("llama", directory_ / "llama");
  const std::string config = directory_ / "llama/config.json";
  json edited = json::parse(std::ifstream(config));
  edited["eos_token_id"] = 40;
  std::ofstream(config) << edited;
  const CommandResult result = run_program(
      "oxbow-convert", {(directory_ / "llama").string(), "-o", (directory_ / "out.oxb").string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: the tokenizer may belong to another model: "
                                    "eos_token_id 40 of config.json is plain text to it"));
}

TEST_F(Hub, AllThatIsWrongWithAConfigIsToldALineEach) {
  make_hub_folder("llama", directory_ / "llama");
  const std::string config = directory_ / "llama/config.json";
  json edited = json::parse(std::ifstream(config));
  edited["hidden_act"] = "maxout";
  edited["rms_norm_eps"] = "small";
  edited["a_new_switch"] = true;
  edited["an_old_switch"] = false;
  std::ofstream(config) << edited;
  const std::string folder = (directory_ / "llama").string();
  const std::string out = (directory_ / "out.oxb").string();
  const CommandResult refused = run_program("oxbow-convert", {folder, "-o", out});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("config.json: 3 problems for model_type llama:\n"));
  EXPECT_THAT(refused.err, HasSubstr("\n  hidden_act is \"maxout\", expected"));
  EXPECT_THAT(refused.err, HasSubstr("\n  rms_norm_eps is \"small\", expected a number"));
  EXPECT_THAT(refused.err, HasSubstr("\n  unknown key a_new_switch\n"));
  EXPECT_THAT(refused.err, HasSubstr("use --ignore-key"));
  const CommandResult without =
      run_program("oxbow-convert", {folder, "-o", out, "--ignore-key", "hidden_act", "--ignore-key",
                                    "rms_norm_eps", "--ignore-key", "a_new_switch"});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("passed over, since it changes no result: "));
  EXPECT_THAT(without.err, HasSubstr(", an_old_switch, "));
}

TEST_F(Hub, AFailedConversionSaysThatTheFileIsTheOlderOne) {
  make_hub_folder("gpt2", directory_ / "gpt2");
  std::ofstream(directory_ / "gpt2/merges.txt") << "#version: 0.2\nNo Such\n";
  const std::string out = (directory_ / "out.oxb").string();
  std::ofstream(out) << "older";
  const CommandResult refused =
      run_program("oxbow-convert", {(directory_ / "gpt2").string(), "-o", out});
  EXPECT_EQ(refused.exit_code, 3);
  expect_one_line(refused, "out.oxb is still the older one");
}

}  // namespace
}  // namespace oxbow::testing
