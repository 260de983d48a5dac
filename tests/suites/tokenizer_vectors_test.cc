// Every vocabulary of tests/tokenizers, found by the converter as in a checkpoint's folder, against what the
// original libraries made of the same lines.

#include "tests/support/tokenizer_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "converter/text/tokenizer/find.h"
#include "host/io_file.h"
#include "host/testing/paths.h"
#include "runtime/testing/tokenizer.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

// More than any of the vocabularies has.
constexpr uint32_t kTokens = 8000;

class TokenizerVectorsOf : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_EQ(tokenizer_.status(), Status::kOk) << tokenizer_.error(); }

  /// Null when the vocabulary has no such file.
  json read_json(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return file ? json::parse(file) : json();
  }

  const std::filesystem::path folder_ = tokenizer_folder(GetParam());
  const OwnedTokenizer tokenizer_{
      *convert::find_tokenizer(folder_.string(), {"", kTokens}).tokenizer, kTokens};
};

TEST_P(TokenizerVectorsOf, LinesAndTheirTokensAreThoseOfTheOriginalLibrary) {
  expect_vectors(*tokenizer_, read_tokenizer_vectors(GetParam()));
}

TEST_P(TokenizerVectorsOf, AnyTokensDecodeAsInTheOriginalLibrary) {
  const json lists = read_json("decode.json");
  ASSERT_EQ(lists.size(), 40u);
  for (const json& list : lists) {
    const auto ids = list["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(decode_all(*tokenizer_, ids), list["text"].get<std::string>()) << list["ids"];
    if (!list.contains("without_special")) continue;
    EXPECT_EQ(decode_all(*tokenizer_, ids, true), list["without_special"].get<std::string>())
        << list["ids"];
  }
}

TEST_P(TokenizerVectorsOf, ATextIsPutBetweenTheTokensOfTheOriginalLibrary) {
  const json expected = read_json("template.json");
  EncodeOptions options;
  options.add_template = 1;
  for (const char* text : {"", "a"}) {
    const json& ids = expected.is_null() ? json() : expected[*text == 0 ? "empty" : text];
    // Where the library adds nothing there is no file.
    const auto without = encode_all(*tokenizer_, text);
    EXPECT_EQ(encode_all(*tokenizer_, text, options),
              ids.is_null() ? without : ids.get<std::vector<int32_t>>());
  }
}

TEST(TokenizerVectorsInGguf, AreThoseOfTheVocabularyItWasMadeFrom) {
  const std::pair<const char*, const char*> files[] = {
      {"gpt2-vocabulary.gguf", "gpt2/latin"},
      {"llama3-vocabulary.gguf", "llama3/arabic_hebrew"},
      {"llama2-vocabulary.gguf", "spbpe/latin"}};
  for (const auto& [name, vocabulary] : files) {
    SCOPED_TRACE(name);
    const MappedFile file(testing::source_dir() + "/tests/formats/gguf/" + name);
    const convert::Gguf gguf(file.path(), file.bytes());
    const OwnedTokenizer tokenizer(*convert::read_gguf_tokenizer(gguf, {"", kTokens}).tokenizer,
                                   kTokens);
    ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
    // SentencePiece itself never looks for control tokens in text.
    const bool parse_special = std::string_view(vocabulary) != "spbpe/latin";
    expect_vectors(*tokenizer, read_tokenizer_vectors(vocabulary), parse_special);
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '-'; }, '_');
  return name;
}

std::vector<std::string> all_vocabularies() {
  std::vector<std::string> all;
  for (const char* kind : {"gpt2", "llama3", "wordpiece", "unigram", "spbpe"}) {
    const std::vector<std::string> some = tokenizer_vocabularies(kind);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerVectorsOf, ::testing::ValuesIn(all_vocabularies()),
                         test_name);

}  // namespace
}  // namespace oxbow::testing
