#include "converter/text/tokenizer/words_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/text/tokenizer/find.h"
#include "host/errors.h"
#include "host/json_file.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"
#include "runtime/testing/tokenizer.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

constexpr uint32_t kVocabulary = 400;

std::unique_ptr<schema::TokenizerT> read(const json& file) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "tokenizer.json", file.dump());
  return std::move(find_tokenizer(directory / "", {"", kVocabulary}).tokenizer);
}

json programs() {
  return read_json(testing::source_dir() + "/tests/tokenizers/programs/programs.json", 1 << 20);
}

TEST(WordsJson, GivesTheTokensAndTextsOfTheOriginalHoweverTextComes) {
  for (const json& program : programs()) {
    const std::string name = program["name"];
    const auto table = read(program["tokenizer"]);
    ASSERT_NE(table, nullptr) << name;
    EXPECT_TRUE(table->words) << name;
    const OwnedTokenizer tokenizer(*table, kVocabulary);
    ASSERT_EQ(tokenizer.status(), Status::kOk) << name << ": " << tokenizer.error();
    for (const json& expected : program["cases"]) {
      const std::string text = expected["text"];
      for (const size_t chunk : {0u, 1u, 3u, 7u}) {
        EncodeOptions options;
        options.chunk = chunk;
        options.room = chunk == 3 ? 2 : 0;
        EXPECT_EQ(json(encode_all(*tokenizer, text, options)), expected["ids"])
            << name << ", " << expected["text"] << ", " << chunk;
      }
      EXPECT_EQ(decode_all(*tokenizer, expected["ids"].get<std::vector<int32_t>>()),
                expected["back"].get<std::string>())
          << name << ", " << expected["text"];
    }
  }
}

/// The first program of the list: Unigram, white space, Metaspace, a template.
json first_program() { return programs()[0]["tokenizer"]; }

/// The first program with more pieces, which have the ids from `first` on.
json with_pieces(const std::vector<std::pair<std::string, double>>& pieces, int32_t* first) {
  json file = first_program();
  json& vocab = file["model"]["vocab"];
  *first = static_cast<int32_t>(vocab.size());
  for (const auto& [text, score] : pieces) vocab.push_back(json::array({text, score}));
  file["added_tokens"] = json::array();
  return file;
}

TEST(WordsJson, ScoresAreThoseThatTheOriginalReadsAndNotTheNearestToTheDigits) {
  // Both ways to cut ¤¤¤ have one sum. Rounding decides, and it goes the other way with the nearest numbers.
  struct Case {
    double x, one, two;
    std::vector<int32_t> ids;
  };
  for (const Case& c :
       {Case{-3.7266452928536893, -3.0618329243153015, -4.144004325789165, {0, 2, 1}},
        {-11.274756314280605, -10.289200487784194, -10.066523467023234, {0, 1, 2}}}) {
    int32_t first = 0;
    const auto table = read(with_pieces({{"\u2581§", c.x}, {"¤", c.one}, {"¤¤", c.two}}, &first));
    const OwnedTokenizer tokenizer(*table, kVocabulary);
    ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
    std::vector<int32_t> expected = c.ids;
    for (int32_t& id : expected) id += first;
    EXPECT_EQ(encode_all(*tokenizer, "§¤¤¤"), expected);
  }
}

TEST(WordsJson, MarksThatTheOriginalDoesNotKnowAreNotStripped) {
  int32_t first = 0;
  json file = with_pieces({{"\u2581§", -1.0}, {"\u1df6", -1.0}, {"\u0d3b", -1.0}}, &first);
  file["normalizer"] = {{"type", "StripAccents"}};
  const auto table = read(file);
  const OwnedTokenizer tokenizer(*table, kVocabulary);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  // Unicode 9 has the first two and the last, which is none any more.
  EXPECT_EQ(encode_all(*tokenizer, "§\u0301\u302e\u1df6\u0d3b\u1cf2"),
            (std::vector<int32_t>{first, first + 1, first + 2}));
}

TEST(WordsJson, PutsATextOrTwoBetweenTheTokensOfTheTemplate) {
  const auto table = read(first_program());
  EXPECT_EQ(table->before, (std::vector<uint32_t>{0}));
  EXPECT_EQ(table->after, (std::vector<uint32_t>{2}));
  EXPECT_EQ(table->pair_between, (std::vector<uint32_t>{2, 2}));
  EXPECT_EQ(table->pair_after, (std::vector<uint32_t>{2}));
  const OwnedTokenizer tokenizer(*table, kVocabulary);
  EncodeOptions options;
  options.add_template = OXB_TEMPLATE_FIRST;
  EXPECT_EQ(encode_all(*tokenizer, "hello", options), (std::vector<int32_t>{0, 13, 2, 2}));
  options.add_template = OXB_TEMPLATE_SECOND;
  EXPECT_EQ(encode_all(*tokenizer, "hello", options), (std::vector<int32_t>{13, 2}));
}

TEST(WordsJson, RefusesPairsWhereNoTemplateHasThem) {
  json file = first_program();
  file["post_processor"] = nullptr;
  const auto table = read(file);
  const OwnedTokenizer tokenizer(*table, kVocabulary);
  oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
  options.add_template = OXB_TEMPLATE_FIRST;
  size_t bytes = 0;
  Error error;
  EXPECT_EQ(oxb_encoder::measure(*tokenizer, options, &bytes, &error), Status::kInvalidArgument);
  EXPECT_STREQ(error.text, "encoder: the model takes no pairs of texts");
}

TEST(WordsJson, TakesWordsOfAnyLengthWhereTheirCutsAreKnown) {
  const auto table = read(first_program());
  const OwnedTokenizer tokenizer(*table, kVocabulary);
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ao";
  EncodeOptions options;
  options.max_word_bytes = 64;
  const std::vector<int32_t> ids = encode_all(*tokenizer, text, options);
  ASSERT_EQ(ids.size(), 10001u) << "a mark and the letters";
  EXPECT_EQ(ids[0], 4);
  EXPECT_EQ(ids[10000], 10);
}

TEST(WordsJson, RefusesWhatItDoesNotKnowByItsName) {
  const auto refusal = [](const std::string& pointer, const json& value) -> std::string {
    json file = first_program();
    file[json::json_pointer(pointer)] = value;
    try {
      read(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  for (const auto& [pointer, value, words] :
       std::vector<std::tuple<std::string, json, std::string>>{
           {"/normalizer", {{"type", "Shout"}}, "the normalizer Shout is not supported"},
           {"/normalizer",
            {{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}},
            "(a"},
           {"/normalizer",
            {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}},
            "normalizer.pattern is empty"},
           {"/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "!"}}, "not base64"},
           {"/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "/////w=="}}, ""},
           {"/pre_tokenizer", {{"type", "UnicodeScripts"}}, "UnicodeScripts"},
           {"/pre_tokenizer/pretokenizers/1/replacement", "_", "replacement is not U+2581"},
           {"/decoder", {{"type", "CTC"}}, "the decoder CTC is not supported"},
           {"/model/vocab", json::array(), "model.vocab is no list"},
           {"/model/vocab/0", json::array({"a"}), "expected a text and its score"},
           {"/model/vocab/0/1", "x", "expected a text and its score"},
           {"/model/vocab/0/1", 1e300, "no number of use"},
           {"/model/unk_id", 1000, "model.unk_id is 1000"},
           {"/model/unk_id", nullptr, "model.unk_id is null"},
           {"/model/byte_fallback", true, "<0x00> is no token"},
           {"/added_tokens/0/id", 5, "which is not its id in the vocabulary"},
           {"/added_tokens/0/id", 5000, "expected a number below the 400"},
           {"/model/type", "Other", "expected BPE, Unigram, WordPiece or WordLevel"}}) {
    EXPECT_NE(refusal(pointer, value).find(words), std::string::npos)
        << pointer << ": " << refusal(pointer, value);
    EXPECT_NE(refusal(pointer, value), "nothing was refused") << pointer << value;
  }
}

}  // namespace
}  // namespace oxbow::convert
