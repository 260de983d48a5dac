// Text through the command line: what goes in becomes the right tokens whatever its length, and what
// comes out ends where it should.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "converter/text/tokenizer/double_array.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/text/utf8.h"
#include "tests/support/cli.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

/// Letters that stand for ids: two bytes each.
std::string letters(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) {
    char bytes[4];
    text.append(bytes, write_utf8(0xc0 + static_cast<uint32_t>(id), bytes));
  }
  return text;
}

std::string joined(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

std::vector<int32_t> numbers(const std::string& text) {
  std::vector<int32_t> all;
  std::istringstream in(text);
  for (int32_t number = 0; in >> number;) all.push_back(number);
  return all;
}

class CliTokens : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    with_vocabulary(256).write(*directory_ / "bytes");
    bytes_ = convert(*directory_ / "bytes", *directory_ / "bytes.oxb",
                     {"--tokenizer", "byte", "--max-segment", "8"});
    TinyCheckpoint().write(*directory_ / "chars");
    std::ofstream(*directory_ / "vocabulary.json") << R"(["\n", "a", "b", "é", "€"])";
    chars_ = convert(*directory_ / "chars", *directory_ / "chars.oxb",
                     {"--tokenizer", (*directory_ / "vocabulary.json").string()});
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
  static std::string edited(const std::string& model,
                            const std::function<void(schema::ModelT&)>& edit) {
    static int count = 0;
    const std::string path = (*directory_ / ("edited" + std::to_string(count++) + ".oxb")).string();
    edit_model(model, path, edit);
    return path;
  }
  /// A golden pack with a letter for each of its tokens.
  static std::string lettered(const std::string& pack,
                              const std::function<void(schema::ModelT&)>& edit) {
    const std::string plain = golden_model(pack, {});
    const uint32_t vocabulary = oxb::Model::open(plain.c_str())->info().vocabulary;
    return edited(plain, [&](schema::ModelT& model) {
      model.tokenizer = std::make_unique<schema::TokenizerT>();
      model.tokenizer->kind = schema::TokenizerKind::Char;
      for (uint32_t i = 0; i < vocabulary; ++i) model.tokenizer->code_points.push_back(0xc0 + i);
      edit(model);
    });
  }
  static std::string file(const std::string& text) {
    const std::string path = (*directory_ / "text.txt").string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static schema::GenerationT& generation(schema::ModelT& model) {
    if (model.generation == nullptr) model.generation = std::make_unique<schema::GenerationT>();
    return *model.generation;
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string bytes_, chars_;
};

// ---- run ----------------------------------------------------------------------------------------

/// A piece of `text` that can be given to a program, from `at` or soon behind it.
std::string piece_of(const std::string& text, size_t at, size_t bytes) {
  for (;; ++at) {
    const std::string piece = text.substr(at, bytes);
    if (piece.find('\0') == piece.npos && (piece[0] & 0xc0) != 0x80 &&
        (at + bytes >= text.size() || (text[at + bytes] & 0xc0) != 0x80)) {
      return piece;
    }
  }
}

TEST_F(CliTokens, ATextEndsBeforeAStopWordThatSpansTokens) {
  const Words words = {"run", bytes_, "--prompt", "Once", "--tokens", "200", "--seed", "5"};
  const std::string all = good(words);
  const auto stopped = [&](const Words& stops) {
    Words more = words;
    for (const std::string& stop : stops) more.push_back("--stop=" + stop);
    return good(more);
  };
  const std::string early = piece_of(all, 40, 5), late = piece_of(all, 100, 7);
  ASSERT_LT(all.find(early), all.find(late));
  EXPECT_EQ(stopped({early}), all.substr(0, all.find(early)));
  EXPECT_EQ(stopped({late}), all.substr(0, all.find(late)));
  EXPECT_EQ(stopped({late, early}), all.substr(0, all.find(early)));
  const std::string letter = piece_of(all, 60, 1);
  EXPECT_EQ(stopped({letter}), all.substr(0, all.find(letter)));
  // What only looks like a stop word is printed, at the end of the text too.
  EXPECT_EQ(stopped({early + "\x01~\x02"}), all);
  EXPECT_EQ(stopped({piece_of(all, all.size() - 3, 3) + "x", early + "\x01~\x02"}), all);
  refused({"run", bytes_, "--prompt", "a", "--stop="}, 2, "--stop is empty");
  refused({"run", bytes_, "--ids", "1", "--stop", "a"}, 2, "--ids prints ids");
}

TEST_F(CliTokens, ATextEndsAtAnyTokenThatEndsOne) {
  const Words words = {"--ids", "1,2,3", "--tokens", "50", "--seed", "3"};
  const auto run = [&](const std::string& model) {
    Words all = {"run", model};
    all.insert(all.end(), words.begin(), words.end());
    return numbers(good(all));
  };
  const std::vector<int32_t> all = run(bytes_);
  ASSERT_EQ(all.size(), 50u);
  const int32_t end = all[20];
  const auto first = std::find(all.begin(), all.end(), end);
  const std::string model =
      edited(bytes_, [&](schema::ModelT& m) { generation(m).more_end_tokens = {end}; });
  EXPECT_EQ(run(model), std::vector<int32_t>(all.begin(), first));
}

TEST_F(CliTokens, WhatTheMakersAdviseIsTheDefault) {
  const std::string model = edited(bytes_, [](schema::ModelT& m) {
    generation(m).temperature = 0.0f;
    generation(m).repetition_penalty = 1.5f;
  });
  const auto run = [&](const std::string& path, const Words& options) {
    Words words = {"run", path, "--prompt", "Once", "--tokens", "60", "--seed", "4"};
    words.insert(words.end(), options.begin(), options.end());
    return good(words);
  };
  EXPECT_EQ(run(model, {}), run(bytes_, {"--temperature", "0", "--repetition-penalty", "1.5"}));
  EXPECT_EQ(run(model, {"--temperature", "0.8", "--repetition-penalty", "1"}), run(bytes_, {}));
}

TEST_F(CliTokens, AChatBringsItsOwnSurroundings) {
  const std::string model = edited(bytes_, [](schema::ModelT& m) {
    m.tokenizer->before = {65};
    m.tokenizer->after = {66};
    m.tokenizer->chat_before = "<q>";
    m.tokenizer->chat_after = "</q>\n";
  });
  const auto run = [&](const std::string& path, const Words& options) {
    Words words = {"run", path, "--tokens", "40"};
    words.insert(words.end(), options.begin(), options.end());
    return good(words);
  };
  EXPECT_EQ(run(model, {"--prompt", "hi"}), run(bytes_, {"--prompt", "AhiB"}));
  EXPECT_EQ(run(model, {"--prompt", "hi", "--chat"}), run(bytes_, {"--prompt", "<q>hi</q>\n"}));
  EXPECT_EQ(run(model, {"--file", file("hi"), "--chat"}), run(bytes_, {"--prompt", "<q>hi</q>\n"}));
  EXPECT_EQ(run(model, {}), run(bytes_, {"--prompt", "AB"}));
  refused({"run", bytes_, "--chat", "--prompt", "hi"}, 3, "does not say how to ask");
  refused({"run", model, "--chat"}, 2, "--chat needs a question");
  refused({"run", model, "--chat", "--ids", "1"}, 2, "--chat needs a question");
  // Places are those of the question.
  const std::string few =
      edited(chars_, [](schema::ModelT& m) { m.tokenizer->chat_before = "a\na"; });
  refused({"run", few, "--chat", "--prompt", "ab\nbx"}, 3, "line 2, column 2 (byte 4)");
}

TEST_F(CliTokens, MasksAreWrittenAndFilledAsText) {
  constexpr int32_t kMask = 2;
  const auto edit = [&](schema::ModelT& m) {
    m.tokenizer->mask_token = kMask;
    m.tokenizer->before = {1};
    m.tokenizer->after = {4};
    m.tokenizer->added_trie = convert::build_double_array({{"[MASK]", kMask}});
  };
  const std::string model = lettered("bert/b2_mlm", edit);
  const std::vector<int32_t> ids = {1, 7, kMask, 9, kMask, 4};
  std::istringstream lines(good({"run", model, "--ids", joined(ids), "--top-k", "3"}));
  // The same with letters for the tokens, and the best of them in the text.
  std::string expected;
  std::vector<int32_t> filled = ids;
  size_t place = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("token ")) {
      place = std::stoul(line.substr(6));
      expected += line + "\n";
      continue;
    }
    const int32_t id = std::stoi(line.substr(line.rfind(' ') + 1));
    if (filled[place] == kMask && ids[place] == kMask) filled[place] = id;
    expected += line.substr(0, line.rfind(' ') + 1) + letters({id}) + "\n";
  }
  ASSERT_EQ(std::count(expected.begin(), expected.end(), '\n'), 8);
  expected += letters(filled) + "\n";
  const std::string text = letters({7}) + "[MASK]" + letters({9, kMask});
  EXPECT_EQ(good({"run", model, "--prompt", text, "--top-k", "3"}), expected);
  EXPECT_EQ(good({"run", model, "--prompt", text, "--mask", "2", "--top-k", "3"}), expected);
  refused({"run", model, "--prompt", letters({7, 9})}, 3,
          "write " + letters({kMask}) + " where a word is missing");
  refused({"run", model, "--prompt", text, "--stop", "a"}, 2, "--stop is for models that");
  refused({"run", model, "--prompt", text, "--chat"}, 2, "--chat is for models that generate");
}

TEST_F(CliTokens, TextToTranslateEndsOnce) {
  const std::string by_hand = lettered("marian/ma1", [](schema::ModelT&) {});
  const int32_t end = oxb::Model::open(by_hand.c_str())->info().end_token;
  ASSERT_GE(end, 0);
  const std::string by_template = lettered(
      "marian/ma1", [&](schema::ModelT& m) { m.tokenizer->after = {static_cast<uint32_t>(end)}; });
  const std::string expected =
      letters(numbers(good({"run", by_hand, "--ids", joined({5, 6, 7, end}), "--tokens", "9"})));
  for (const std::string& model : {by_hand, by_template}) {
    const CommandResult result =
        oxbow({"run", model, "--prompt", letters({5, 6, 7}), "--tokens", "9"});
    EXPECT_EQ(result.out, expected);
    EXPECT_TRUE(result.err.starts_with("prompt 4 tokens")) << result.err;
    EXPECT_EQ(good({"run", model, "--prompt", letters({5, 6, 7}), "--tokens", "9", "--beams", "3",
                    "--stop", letters({5})})
                  .find(letters({5})),
              std::string::npos);
  }
}

TEST_F(CliTokens, TextToClassifyStandsBetweenWhatTheModelExpects) {
  const std::string model = lettered("bert/b1_cls", [](schema::ModelT& m) {
    m.tokenizer->before = {1};
    m.tokenizer->after = {4};
  });
  EXPECT_EQ(good({"run", model, "--prompt", letters({5, 6, 7})}),
            good({"run", model, "--ids", "1,5,6,7,4"}));
  const auto classes = [&](const std::string& lines, const Words& options) {
    Words words = {"eval", model, "--classify", file(lines), "--json"};
    words.insert(words.end(), options.begin(), options.end());
    return json::parse(good(words))["lines"];
  };
  EXPECT_EQ(classes(letters({5, 6}) + "\t0\r\n\n" + letters({9}), {}),
            classes("1,5,6,4\t0\n1,9,4\n", {"--ids"}));
}

// ---- tokenize -----------------------------------------------------------------------------------

TEST_F(CliTokens, TokenizeShowsATokenInEachLine) {
  const CommandResult result = oxbow({"tokenize", bytes_, "--prompt", "a \"é\n"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out,
            "      97  \"a\"\n"
            "      32  \" \"\n"
            "      34  \"\\\"\"\n"
            "     195  \"\\xc3\"\n"
            "     169  \"\\xa9\"\n"
            "      10  \"\\n\"\n");
  EXPECT_EQ(result.err, "6 tokens, 6 bytes, 1.000 bytes per token\n");
  const json all = json::parse(good({"tokenize", chars_, "--file", file("€a"), "--json"}));
  EXPECT_EQ(all["tokens"], json::parse(R"([{"id": 4, "text": "€"}, {"id": 1, "text": "a"}])"));
  EXPECT_EQ(all["count"], 2);
  EXPECT_EQ(all["bytes"], 4);
  EXPECT_EQ(all["bytes_per_token"], 2.0);
  const json none = json::parse(good({"tokenize", chars_, "--prompt", "", "--json"}));
  EXPECT_EQ(none["tokens"], json::array());
  // JSON has no bytes.
  EXPECT_EQ(json::parse(good({"tokenize", bytes_, "--prompt", "é", "--json"}))["count"], 2);
}

TEST_F(CliTokens, TokenizeKnowsTemplatesAndSpecialTokens) {
  const std::string model = edited(bytes_, [](schema::ModelT& m) {
    m.tokenizer->before = {1};
    m.tokenizer->after = {2, 3};
    m.tokenizer->added_trie = convert::build_double_array({{"<end>", 7}});
  });
  const auto ids = [&](const Words& options) {
    Words words = {"tokenize", model, "--prompt", "a<end>", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const json tokens = json::parse(good(words))["tokens"];
    std::vector<int32_t> all;
    for (const json& token : tokens) all.push_back(token["id"]);
    return all;
  };
  EXPECT_EQ(ids({}), (std::vector<int32_t>{1, 97, 7, 2, 3}));
  EXPECT_EQ(ids({"--no-template"}), (std::vector<int32_t>{97, 7}));
  EXPECT_EQ(ids({"--no-template", "--no-special"}),
            (std::vector<int32_t>{97, '<', 'e', 'n', 'd', '>'}));
}

TEST_F(CliTokens, TokenizeGoesTheOtherWay) {
  EXPECT_EQ(good({"tokenize", bytes_, "--ids", "97,195,169,226"}), "aé\xef\xbf\xbd\n");
  EXPECT_EQ(json::parse(good({"tokenize", chars_, "--ids", "4,3,0", "--json"})),
            json::parse(R"({"text": "€é\n"})"));
  EXPECT_EQ(good({"tokenize", chars_, "--ids", ""}), "\n");
}

TEST_F(CliTokens, TokenizeSaysWhatItCannotDo) {
  refused({"tokenize", bytes_}, 2, "one of --prompt, --file and --ids");
  refused({"tokenize", bytes_, "--prompt", "a", "--ids", "1"}, 2, "one of --prompt");
  refused({"tokenize", bytes_, "--ids", "1", "--no-template"}, 2, "--no-template is for text");
  refused({"tokenize", bytes_, "--ids", "256"}, 2, "'256' is not a token");
  refused({"tokenize", chars_, "--file", "/nonexistent/text"}, 3, "/nonexistent/text");
  refused({"tokenize", chars_, "--file", directory_->path().string()}, 3, "cannot read");
  const std::string silent = convert(*directory_ / "chars", *directory_ / "silent.oxb", {});
  refused({"tokenize", silent, "--prompt", "a"}, 3, "--tokenizer");
}

// ---- Long texts ---------------------------------------------------------------------------------

TEST_F(CliTokens, ALongTextFromAPipeNeedsNoMoreMemoryThanAShortOne) {
  constexpr size_t kBlocks = 16;
  const std::string block(size_t{1} << 20, 'a');  // One line of 16 MiB.
  // A sanitizer keeps what was freed, up to 256 MiB unless told otherwise.
  setenv("ASAN_OPTIONS", "quarantine_size_mb=1", 1);
  PipedProgram program("oxbow", {"tokenize", bytes_, "--file", "-"}, false);
  uint64_t early = 0;
  for (size_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(program.write(block));
    if (i == 1) early = program.peak_bytes();
  }
  const uint64_t late = program.peak_bytes();
  const CommandResult result = program.finish();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "16,777,216 tokens, 16,777,216 bytes, 1.000 bytes per token\n");
  EXPECT_LE(late, early + (uint64_t{1} << 20));
}

TEST_F(CliTokens, APlaceFarBehindIsStillToldRight) {
  for (const char* command : {"run", "tokenize", "eval"}) {
    Words words = {command, chars_, command == std::string("eval") ? "--text" : "--file", "-"};
    PipedProgram program("oxbow", words);
    std::string text;
    for (int i = 0; i < 50000; ++i) text += "€b\n";
    program.write(text + "éax");
    const CommandResult result = program.finish();
    EXPECT_EQ(result.exit_code, 3);
    expect_one_line(result, "standard input, line 50001, column 3 (byte 250003): U+0078 'x'");
  }
}

TEST_F(CliTokens, APipeAndAFileAreTheSame) {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += static_cast<char>('a' + i * i % 23);
  const std::string path = file(text);
  const auto piped = [&](const Words& words) {
    PipedProgram program("oxbow", words);
    EXPECT_TRUE(program.write(text));
    return program.finish();
  };
  EXPECT_EQ(piped({"run", bytes_, "--file", "-", "--tokens", "20"}).out,
            good({"run", bytes_, "--file", path, "--tokens", "20"}));
  EXPECT_EQ(piped({"tokenize", bytes_, "--file", "-"}).out,
            good({"tokenize", bytes_, "--file", path}));
  const auto bits = [](const std::string& out) {
    return json::parse(out)["models"][0]["bits_per_byte"];
  };
  EXPECT_EQ(bits(piped({"eval", bytes_, "--text", "-", "--limit", "900", "--json"}).out),
            bits(good({"eval", bytes_, "--text", file(text.substr(0, 900)), "--json"})));
  refused({"eval", bytes_, "--text", "-", "--compare", bytes_}, 2,
          "--compare reads the text twice");
}

// ---- eval ---------------------------------------------------------------------------------------

/// Bits of the tokens from `first` on, in one run.
double bits_of(const std::string& path, const std::vector<int32_t>& ids, size_t first) {
  const oxb::Expected<oxb::Model> model = oxb::Model::open(path.c_str());
  oxb::Expected<oxb::Session> session = oxb::Session::create(*model);
  const size_t width = model->info().output_width;
  std::vector<float> logits(ids.size() * width);
  EXPECT_TRUE(session->run(ids, logits).ok());
  double bits = 0.0;
  for (size_t i = first; i < ids.size(); ++i) {
    const float* row = &logits[(i - 1) * width];
    double sum = 0.0;
    for (size_t k = 0; k < width; ++k) sum += std::exp(static_cast<double>(row[k]));
    bits -= std::log2(std::exp(static_cast<double>(row[ids[i]])) / sum);
  }
  return bits;
}

TEST_F(CliTokens, EvalPredictsTheWholeTextWhenSomethingGoesBeforeIt) {
  const std::string model = edited(chars_, [](schema::ModelT& m) {
    m.tokenizer->before = {2, 0};
    m.tokenizer->after = {1};
    m.tokenizer->added_trie = convert::build_double_array({{"ba", 3}});
  });
  // What looks like an added token is text.
  const std::string text = "€bab\né";
  const json quality =
      json::parse(good({"eval", model, "--text", file(text), "--json"}))["models"][0];
  const double bits = bits_of(model, {2, 0, 4, 2, 1, 2, 0, 3}, 2);
  EXPECT_EQ(quality["tokens"], 6);
  EXPECT_EQ(quality["characters"], 6);
  EXPECT_EQ(quality["bytes"], text.size());
  EXPECT_NEAR(quality["bits_per_byte"], bits / static_cast<double>(text.size()), 1e-6);
  EXPECT_NEAR(quality["bits_per_character"], bits / 6, 1e-6);
  EXPECT_NEAR(quality["perplexity"], std::exp2(bits / 6), 1e-4);
  // Without it, what the first token stands for does not count.
  const json rest =
      json::parse(good({"eval", chars_, "--text", file(text), "--json"}))["models"][0];
  EXPECT_EQ(rest["tokens"], 5);
  EXPECT_EQ(rest["characters"], 5);
  EXPECT_EQ(rest["bytes"], text.size() - 3);
  EXPECT_NEAR(rest["bits_per_byte"],
              bits_of(chars_, {4, 2, 1, 2, 0, 3}, 1) / static_cast<double>(text.size() - 3), 1e-6);
  // One token is enough to be predicted, none is not.
  EXPECT_EQ(
      json::parse(good({"eval", model, "--text", file("a"), "--json"}))["models"][0]["tokens"], 1);
  refused({"eval", model, "--text", file("")}, 3, "the text is empty");
}

TEST_F(CliTokens, EvalBeginsAStreamThatIsFullAsItBeganTheFirst) {
  const std::string model =
      lettered("gpt2/g1_tied", [](schema::ModelT& m) { m.tokenizer->before = {3}; });
  const oxb_model_info info = oxb::Model::open(model.c_str())->info();
  const uint64_t segment = std::min<uint64_t>(info.max_segment, info.capacity - 1);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 500; ++i) ids.push_back(i * i % 31);
  const json quality =
      json::parse(good({"eval", model, "--text", file(letters(ids)), "--json"}))["models"][0];
  EXPECT_EQ(quality["segment"], segment);
  EXPECT_EQ(quality["tokens"], ids.size());
  EXPECT_EQ(quality["bytes"], 2 * ids.size());
  EXPECT_GT(quality["restarts"], 0);
}

}  // namespace
}  // namespace oxbow::testing
