// SentencePiece's vocabularies, read by the converter, against what SentencePiece made of the same lines.

#include <gtest/gtest.h>

#include <string>

#include "converter/tokenizer/sentencepiece.h"
#include "runtime/text/testing.h"
#include "tests/support/tokenizer_vectors.h"

namespace oxbow {
namespace {

using testing::read_tokenizer_vectors;
using testing::tokenizer_folder;
using testing::TokenizerVector;

constexpr const char* kGroups[] = {"latin", "cyrillic_greek", "arabic_hebrew", "cjk", "indic_thai"};

std::string model_path(const std::string& name) {
  return tokenizer_folder(name) +
         (name.starts_with("unigram") ? "/spiece.model" : "/tokenizer.model");
}

class SentencePieceVectors : public ::testing::TestWithParam<std::string> {
 protected:
  const std::vector<TokenizerVector> vectors_ = read_tokenizer_vectors(GetParam());
  const std::unique_ptr<schema::TokenizerT> table_ =
      convert::read_sentencepiece(model_path(GetParam()), {}, 8000);
};

TEST_P(SentencePieceVectors, EncodeToTheSameIds) {
  const OwnedTokenizer tokenizer(*table_, 8000);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  for (size_t i = 0; i < vectors_.size(); ++i) {
    ASSERT_EQ(encode_all(*tokenizer, vectors_[i].line), vectors_[i].ids)
        << "line " << i << ": " << vectors_[i].line;
  }
}

TEST_P(SentencePieceVectors, EncodeTheSameInPiecesOfAnySize) {
  const OwnedTokenizer tokenizer(*table_, 8000);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  EncodeOptions options;
  for (size_t i = 0; i < vectors_.size(); ++i) {
    options.chunk = i % 3 == 0 ? 1 : i % 3 == 1 ? 7 : 0;
    options.room = i % 5 == 0 ? 1 : i % 5 == 1 ? 5 : 0;
    ASSERT_EQ(encode_all(*tokenizer, vectors_[i].line, options), vectors_[i].ids)
        << "line " << i << ": " << vectors_[i].line;
  }
}

TEST_P(SentencePieceVectors, DecodeToTheSameText) {
  const OwnedTokenizer tokenizer(*table_, 8000);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  for (size_t i = 0; i < vectors_.size(); ++i) {
    ASSERT_EQ(decode_all(*tokenizer, vectors_[i].ids), vectors_[i].text)
        << "line " << i << ": " << vectors_[i].line;
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const char* kind : {"unigram/", "spbpe/"}) {
    for (const char* group : kGroups) names.push_back(std::string(kind) + group);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceVectors, ::testing::ValuesIn(all_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace oxbow
