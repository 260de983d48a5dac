// Byte-pair encodings against the library that made their vocabularies.

#include "converter/tokenizer/byte_bpe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/text/testing.h"
#include "tests/support/tokenizer_vectors.h"

namespace oxbow::testing {
namespace {

// More than any of the vocabularies has.
constexpr uint32_t kTokens = 5000;

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::unique_ptr<schema::TokenizerT> read(const std::string& vocabulary) {
  const std::filesystem::path folder = tokenizer_folder(vocabulary);
  const std::string json = folder / "tokenizer.json";
  if (std::filesystem::exists(json)) {
    return convert::read_byte_bpe_json(json, read_json(json), {}, kTokens);
  }
  return convert::read_byte_bpe(folder / "vocab.json", folder / "merges.txt", {}, kTokens);
}

class ByteBpeVectors : public ::testing::TestWithParam<std::string> {};

TEST_P(ByteBpeVectors, AreThoseOfTheOriginalLibrary) {
  const OwnedTokenizer tokenizer(*read(GetParam()), kTokens);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  expect_vectors(*tokenizer, read_tokenizer_vectors(GetParam()));
}

TEST_P(ByteBpeVectors, TheTemplateIsThatOfTheOriginalLibrary) {
  const std::filesystem::path path = tokenizer_folder(GetParam()) / "template.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "it has none";
  const nlohmann::json expected = read_json(path);
  const OwnedTokenizer tokenizer(*read(GetParam()), kTokens);
  EncodeOptions options;
  options.add_template = 1;
  EXPECT_EQ(encode_all(*tokenizer, "", options), expected["empty"].get<std::vector<int32_t>>());
  EXPECT_EQ(encode_all(*tokenizer, "a", options), expected["a"].get<std::vector<int32_t>>());
}

std::string name(const ::testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  for (char& c : out) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}

INSTANTIATE_TEST_SUITE_P(Gpt2, ByteBpeVectors, ::testing::ValuesIn(tokenizer_vocabularies("gpt2")),
                         name);
INSTANTIATE_TEST_SUITE_P(Llama3, ByteBpeVectors,
                         ::testing::ValuesIn(tokenizer_vocabularies("llama3")), name);

}  // namespace
}  // namespace oxbow::testing
