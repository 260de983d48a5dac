// oxbow embed with a folder as sentence-transformers lays it out.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "host/io_file.h"
#include "host/npy.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/terminal.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

class CliEmbed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    const std::filesystem::path folder = *directory_ / "model";
    std::filesystem::create_directories(folder / "1_Pooling");
    for (const char* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy(golden() / "xlm_roberta/xr2_model" / name, folder / name);
    }
    write(folder / "modules.json", R"([{"path": "", "type": "s.Transformer"},
      {"path": "1_Pooling", "type": "s.Pooling"}, {"path": "2_Normalize", "type": "s.Normalize"}])");
    write(folder / "1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
    write(folder / "sentence_bert_config.json", R"({"max_seq_length": 12})");
    write(folder / "config_sentence_transformers.json",
          R"({"prompts": {"query": "ab", "none": ""}, "default_prompt_name": "query"})");
    json letters = json::array();
    for (int i = 0; i < 83; ++i) letters.push_back(std::string(1, static_cast<char>('!' + i)));
    write(*directory_ / "letters.json", letters.dump());
    const std::string tokenizer = (*directory_ / "letters.json").string();
    model_ =
        convert(folder, *directory_ / "stored.oxb", {"--weights", "f32", "--tokenizer", tokenizer});
    plain_ = convert(golden() / "xlm_roberta/xr2_model", *directory_ / "plain.oxb",
                     {"--weights", "f32", "--tokenizer", tokenizer});
  }
  static void TearDownTestSuite() { delete directory_; }

  static void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string good(Words words) {
    words.insert(words.begin(), "embed");
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  static std::vector<float> row(const Words& words) {
    std::istringstream text(good(words));
    std::vector<float> out;
    for (float value; text >> value;) out.push_back(value);
    return out;
  }
  static void refused(Words words, int code, const std::string& part) {
    words.insert(words.begin(), "embed");
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, code) << result.out << result.err;
    expect_one_line(result, part);
  }
  static double length(const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(sum);
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string model_, plain_;
};

TEST_F(CliEmbed, DoesWhatTheFileSays) {
  const std::vector<float> stored = row({model_, "--text", "hello"});
  ASSERT_EQ(stored.size(), 36u);
  EXPECT_NEAR(length(stored), 1.0, 1e-6);
  // The same by hand: the default prompt, the mean, the length 1.
  EXPECT_EQ(stored, row({plain_, "--text", "abhello", "--pooling", "mean", "--normalise"}));
  EXPECT_EQ(row({model_, "--text", "hello", "--prefix", ""}),
            row({plain_, "--text", "hello", "--pooling", "mean", "--normalise"}));
  EXPECT_EQ(row({model_, "--text", "hello", "--no-normalise"}),
            row({plain_, "--text", "abhello", "--pooling", "mean"}));
  EXPECT_NE(row({model_, "--text", "hello", "--pooling", "first"}), stored);
  EXPECT_EQ(row({model_, "--text", "hello", "--prompt-name", "query"}), stored);
}

TEST_F(CliEmbed, LongTextsAreCutOffAsTheFileSays) {
  const CommandResult cut = oxbow({"embed", model_, "--text", "hello-hello-hello", "--prefix", ""});
  EXPECT_EQ(cut.exit_code, 0);
  EXPECT_NE(cut.err.find("1 text cut off behind 12 tokens"), std::string::npos) << cut.err;
  EXPECT_EQ(cut.out, good({model_, "--text", "hello-hello-", "--prefix", ""}));
  EXPECT_NE(cut.out,
            good({model_, "--text", "hello-hello-hello", "--prefix", "", "--max-tokens", "17"}));
  refused({model_, "--text", "a", "--max-tokens", "49"}, 2, "--max-tokens");
}

TEST_F(CliEmbed, LinesBecomeRowsOfEveryForm) {
  const std::string lines = (*directory_ / "lines.txt").string();
  write(lines, "hello\nplace\nhello\n");
  const std::string text = good({model_, "--file", lines});
  EXPECT_EQ(text, good({model_, "--text", "hello", "--text", "place", "--text", "hello"}));
  const std::string array = (*directory_ / "rows.npy").string();
  EXPECT_EQ(good({model_, "--file", lines, "--npy", array}), "");
  const json report = json::parse(good({model_, "--file", lines, "--json"}));
  EXPECT_EQ(report["pooling"], "mean");
  EXPECT_EQ(report["normalised"], true);
  EXPECT_EQ(report["prefix"], "ab");
  ASSERT_EQ(report["texts"].size(), 3u);
  EXPECT_EQ(report["texts"][1]["text"], "place");
  const std::string bytes = read_file(array);
  const StoredTensor tensor = read_npy(array, std::as_bytes(std::span(bytes)));
  ASSERT_EQ(tensor.shape, (std::vector<uint64_t>{3, 36}));
  const std::vector<float> values = to_floats(tensor);
  std::istringstream stream(text);
  for (size_t i = 0; i < values.size(); ++i) {
    float printed = 0;
    ASSERT_TRUE(stream >> printed);
    ASSERT_EQ(printed, values[i]) << i;
    ASSERT_EQ(report["texts"][i / 36]["embedding"][i % 36].get<float>(), values[i]) << i;
  }
  std::istringstream cosines(good({model_, "--file", lines, "--similarity"}));
  double same = 0, other = 0, again = 0;
  cosines >> same >> other >> again;
  EXPECT_EQ(same, 1.0);
  EXPECT_EQ(again, 1.0);
  EXPECT_LT(other, 1.0);
}

TEST_F(CliEmbed, ManyTextsAreToldAndCtrlCKeepsWhatWasMade) {
  const std::string lines = (*directory_ / "many.txt").string(),
                    array = (*directory_ / "many.npy").string();
  std::ofstream many(lines);
  for (int i = 0; i < 2'000'000; ++i) many << "hello\n";
  many.close();
  refused({model_, "--file", lines, "--npy", (*directory_ / "none/rows.npy").string()}, 3,
          "cannot write");
  TerminalProgram program("oxbow", {"embed", model_, "--file", lines, "--npy", array},
                          {"TERM=xterm"});
  ASSERT_TRUE(program.wait_for("texts: byte ")) << program.shown();
  ASSERT_TRUE(program.wait_for("/s, ")) << program.shown();
  ASSERT_TRUE(program.wait_for(" left")) << program.shown();
  program.type("\003");
  EXPECT_EQ(program.finish(), 130) << program.shown();
  EXPECT_NE(program.shown().find("interrupted: "), std::string::npos) << program.shown();
  const std::string bytes = read_file(array);
  const StoredTensor tensor = read_npy(array, std::as_bytes(std::span(bytes)));
  EXPECT_GT(tensor.shape[0], 0u);
  EXPECT_LT(tensor.shape[0], 2'000'000u);
}

TEST_F(CliEmbed, RefusesWhatHasNoMeaning) {
  refused({plain_, "--text", "a"}, 2, "the file does not say how the rows of a text become one");
  refused({model_}, 2, "give --text or --file");
  refused({model_, "--text", "a", "--file", "-"}, 2, "give --text or --file");
  refused({model_, "--text", "a", "--json", "--similarity"}, 2, "give one of --npy");
  refused({model_, "--text", "a", "--prompt-name", "none"}, 2, "has no prompt of this name");
  refused({model_, "--text", "a", "--prompt-name", "x", "--prefix", "y"}, 2, "give one of");
  refused({model_, "--text", "a", "--pooling", "sum"}, 2, "--pooling");
  refused({golden_model("bert/b1_cls", {}), "--text", "a"}, 3, "something else than hidden states");
  refused({golden_model("bert/b3_tokens", {}), "--text", "a"}, 3, "something else than hidden");
  refused({golden_model("xlm_roberta/xr2_model", {}), "--text", "a"}, 3, "no tokenizer");
  const std::string empty = (*directory_ / "empty.txt").string();
  write(empty, "");
  refused({model_, "--file", empty}, 3, "there is no text");
}

}  // namespace
}  // namespace oxbow::testing
