// BERT's vocabularies, read by the converter, against what the original library made of the same lines.

#include "converter/tokenizer/wordpiece.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "converter/tokenizer/settings.h"
#include "runtime/text/testing.h"
#include "tests/support/tokenizer_vectors.h"

namespace oxbow {
namespace {

using testing::read_tokenizer_vectors;
using testing::tokenizer_folder;
using testing::TokenizerVector;

constexpr uint32_t kVocabulary = 8000;

class WordPieceVectors : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string name_ = std::string("wordpiece/") + GetParam();
  const std::vector<TokenizerVector> vectors_ = read_tokenizer_vectors(name_);
  const OwnedTokenizer tokenizer_{
      *convert::read_wordpiece_vocabulary(tokenizer_folder(name_) + "/vocab.txt",
                                          convert::read_tokenizer_settings(tokenizer_folder(name_)),
                                          kVocabulary),
      kVocabulary};

  void SetUp() override { ASSERT_EQ(tokenizer_.status(), Status::kOk) << tokenizer_.error(); }
};

TEST_P(WordPieceVectors, EncodeToTheSameIds) {
  for (size_t i = 0; i < vectors_.size(); ++i) {
    ASSERT_EQ(encode_all(*tokenizer_, vectors_[i].line), vectors_[i].ids)
        << "line " << i << ": " << vectors_[i].line;
  }
}

TEST_P(WordPieceVectors, EncodeTheSameInPiecesOfAnySize) {
  EncodeOptions options;
  for (size_t i = 0; i < vectors_.size(); ++i) {
    options.chunk = i % 3 == 0 ? 1 : i % 3 == 1 ? 7 : 0;
    options.room = i % 5 == 0 ? 1 : i % 5 == 1 ? 5 : 0;
    ASSERT_EQ(encode_all(*tokenizer_, vectors_[i].line, options), vectors_[i].ids)
        << "line " << i << ": " << vectors_[i].line;
  }
}

TEST_P(WordPieceVectors, DecodeToTheSameText) {
  for (size_t i = 0; i < vectors_.size(); ++i) {
    ASSERT_EQ(decode_all(*tokenizer_, vectors_[i].ids), vectors_[i].text)
        << "line " << i << ": " << vectors_[i].line;
  }
}

TEST_P(WordPieceVectors, PutATextBetweenTheSameTokens) {
  std::ifstream file(tokenizer_folder(name_) + "/template.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  EncodeOptions options;
  options.add_template = 1;
  EXPECT_EQ(encode_all(*tokenizer_, "", options), expected["empty"].get<std::vector<int32_t>>());
  EXPECT_EQ(encode_all(*tokenizer_, "a", options), expected["a"].get<std::vector<int32_t>>());
}

INSTANTIATE_TEST_SUITE_P(All, WordPieceVectors,
                         ::testing::Values("latin", "latin-accents", "cyrillic_greek",
                                           "cyrillic_greek-strip", "arabic_hebrew", "cjk",
                                           "cjk-whole", "indic_thai"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace oxbow
