// SentencePiece's vocabularies, read by the converter, against what SentencePiece made of the same lines.

#include "converter/tokenizer/sentencepiece.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/text/testing.h"
#include "tests/support/tokenizer_vectors.h"

namespace oxbow::testing {
namespace {

// More than any of the vocabularies has.
constexpr uint32_t kTokens = 8000;

class SentencePieceVectors : public ::testing::TestWithParam<std::string> {};

TEST_P(SentencePieceVectors, AreThoseOfTheOriginalLibrary) {
  const std::string& name = GetParam();
  const std::filesystem::path path =
      tokenizer_folder(name) / (name.starts_with("unigram") ? "spiece.model" : "tokenizer.model");
  const OwnedTokenizer tokenizer(*convert::read_sentencepiece(path.string(), {}, kTokens), kTokens);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  expect_vectors(*tokenizer, read_tokenizer_vectors(name));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Unigram, SentencePieceVectors,
                         ::testing::ValuesIn(tokenizer_vocabularies("unigram")), test_name);
INSTANTIATE_TEST_SUITE_P(Bpe, SentencePieceVectors,
                         ::testing::ValuesIn(tokenizer_vocabularies("spbpe")), test_name);

}  // namespace
}  // namespace oxbow::testing
