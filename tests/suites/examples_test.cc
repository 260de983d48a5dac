// The programs of examples/, in C and in C++, write the same, and what the command line writes.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "host/testing/paths.h"
#include "tests/support/cli.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/hub_folder.h"

namespace oxbow::testing {
namespace {

class Examples : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    demo_ = convert(std::filesystem::path(source_dir()) / "examples/demo", *directory_ / "demo.oxb",
                    {});
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string good(const std::string& program, const Words& words) {
    const CommandResult result = run_program(program, words);
    EXPECT_EQ(result.exit_code, 0) << program << ": " << result.err;
    return result.out;
  }
  /// What both programs write.
  static std::string both(const std::string& name, const Words& words) {
    const std::string text = good("example_" + name, words);
    EXPECT_EQ(good("example_" + name + "_cpp", words), text);
    EXPECT_NE(text, "");
    return text;
  }
  static std::string hub(const std::string& name, const Words& options = {}) {
    make_hub_folder(name, *directory_ / name);
    return convert(*directory_ / name, *directory_ / (name + ".oxb"), options);
  }
  /// A golden pack with a letter for each of its tokens.
  static std::string lettered(const std::string& pack) {
    const std::string path = (*directory_ / "lettered.oxb").string();
    edit_model(golden_model(pack, {}), path, [](schema::ModelT& model) {
      model.tokenizer = std::make_unique<schema::TokenizerT>();
      model.tokenizer->kind = schema::TokenizerKind::Char;
      // As many as the model has tokens: the letters, and others that no text here has.
      const uint32_t count = model.tensors[model.entry_points.back()->tokens]->limit;
      for (uint32_t i = 0; i < count; ++i) {
        model.tokenizer->code_points.push_back(i < 26 ? 'a' + i : 0x1000 + i);
      }
    });
    return path;
  }
  /// The path of a file that is not there yet.
  static std::string fresh() {
    static int count = 0;
    return (*directory_ / ("state" + std::to_string(count++))).string();
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string demo_;
};

constexpr const char* kPrompt = "And it came to pass";

TEST_F(Examples, AreShortEnoughToBeReadAtOnce) {
  const auto lines = [](const std::string& name) {
    const std::vector<std::byte> text =
        read_bytes(std::filesystem::path(source_dir()) / "examples" / name);
    return std::count(text.begin(), text.end(), std::byte{'\n'});
  };
  for (std::string name :
       {"generate", "chat", "classify", "embed", "translate", "resume", "rewind"}) {
    EXPECT_LE(lines(name + ".c"), 60) << name;
    EXPECT_LE(lines(name + ".cc"), 40) << name;
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    EXPECT_LE(lines("java/" + name + ".java"), 40) << name;
  }
}

TEST_F(Examples, GenerateWritesTheTextOfTheCommandLine) {
  EXPECT_EQ(both("generate", {demo_, kPrompt}),
            good("oxbow", {"run", demo_, "--prompt", kPrompt, "--tokens", "100"}) + "\n");
}

TEST_F(Examples, ChatAnswersEveryQuestionAsTheCommandLineDoes) {
  const std::string model = hub("llama", {"--ring"});
  PipedProgram chat("oxbow", {"chat", model, "--tokens", "100"});
  EXPECT_TRUE(chat.write("Where is it?\nAnd why?\n"));
  const CommandResult result = chat.finish();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(both("chat", {model, "Where is it?", "And why?"}), result.out);
  const std::string one = both("chat", {model, "Where is it?"});
  EXPECT_TRUE(result.out.starts_with(one));
  EXPECT_EQ(
      good("oxbow", {"run", model, "--chat", "--prompt", "Where is it?", "--tokens", "100"}) + "\n",
      one);
}

TEST_F(Examples, ClassifyNamesAClassAndEmbedGivesNumbers) {
  both("classify", {lettered("bert/b1_cls"), "abcab"});
  both("embed", {lettered("bert/b2_mlm"), "abcab"});
}

TEST_F(Examples, ATextThatCannotBeTakenWholeIsRefusedAndNotCut) {
  const auto refused = [](const std::string& name, const Words& words, const std::string& why) {
    for (const char* language : {"", "_cpp"}) {
      const CommandResult result = run_program("example_" + name + language, words);
      EXPECT_EQ(result.exit_code, 1) << name << language;
      EXPECT_EQ(result.out, "") << name << language;
      EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
    }
  };
  const std::string unknown = "byte 3: U+0043 'C' is not in the vocabulary";
  refused("classify", {lettered("bert/b1_cls"), "abcCab"}, unknown);
  const std::string model = lettered("bert/b2_mlm");
  refused("embed", {model, "abcCab"}, unknown);
  refused("embed", {model, std::string(600, 'a')}, "token");
  refused("generate", {demo_, "a river \xe6\xb2\xb3 here"}, "byte 8: U+6CB3");
}

TEST_F(Examples, TranslateWritesTheTextOfTheCommandLine) {
  const std::string model = hub("marian");
  EXPECT_EQ(both("translate", {model, "The river is long."}),
            good("oxbow", {"run", model, "--prompt", "The river is long.", "--tokens", "60",
                           "--beams", "1"}) +
                "\n");
}

TEST_F(Examples, ATextGoesOnInAnotherProcessWhoeverSavedIt) {
  const std::string whole = good("oxbow", {"run", demo_, "--prompt", kPrompt, "--tokens", "150"});
  const std::string programs[] = {"example_resume", "example_resume_cpp"};
  for (const std::string& first : programs) {
    for (const std::string& second : programs) {
      const std::string state = fresh();
      std::string text = good(first, {demo_, state, kPrompt});
      text += good(second, {demo_, state});
      text += good("oxbow", {"run", demo_, "--resume", state, "--tokens", "50"});
      EXPECT_EQ(text, whole);
    }
  }
  const std::string state = fresh();
  std::string text =
      good("oxbow", {"run", demo_, "--prompt", kPrompt, "--tokens", "50", "--save", state});
  text += good("oxbow", {"run", demo_, "--resume", state, "--tokens", "50", "--save", state});
  text += good("example_resume", {demo_, state});
  EXPECT_EQ(text, whole);
}

TEST_F(Examples, RewindGoesOnSeveralTimesFromOnePlace) {
  const std::string once = both("rewind", {demo_, kPrompt, " that"});
  const std::string text = both("rewind", {demo_, kPrompt, " that", " when", " that"});
  EXPECT_TRUE(text.starts_with(once) && text.ends_with(once)) << text;
  const std::string prompt = std::string(kPrompt) + " that";
  EXPECT_EQ(good("oxbow", {"run", demo_, "--prompt", prompt, "--tokens", "30"}) + "\n", once);
}

}  // namespace
}  // namespace oxbow::testing
