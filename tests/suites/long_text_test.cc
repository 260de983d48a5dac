// Lines without a space, far longer than an encoder's memory, with every kind of tokenizer.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "converter/text/tokenizer/find.h"
#include "runtime/testing/tokenizer.h"
#include "tests/support/tokenizer_vectors.h"

namespace oxbow::testing {
namespace {

constexpr uint32_t kTokens = 8000;
constexpr size_t kPiece = 64 << 10;
constexpr size_t kLine = 16 << 20;

/// Letters in no order, the same in every run.
std::string letters(size_t count) {
  std::string text(count, ' ');
  uint32_t state = 1;
  for (char& letter : text) {
    state = state * 1664525 + 1013904223;
    letter = static_cast<char>('a' + (state >> 24) % 26);
  }
  return text;
}

class LongText : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_EQ(tokenizer_.status(), Status::kOk) << tokenizer_.error(); }

  const OwnedTokenizer tokenizer_{
      *convert::find_tokenizer(tokenizer_folder(GetParam()).string(), {"", kTokens}).tokenizer,
      kTokens};
};

TEST_P(LongText, HasTheTokensOfAnEncoderThatSeesAllOfIt) {
  const std::string line = letters(256 << 10);
  EncodeOptions large;
  large.max_word_bytes = static_cast<uint32_t>(line.size());
  EncodeOptions small;
  small.chunk = 1000;
  EXPECT_EQ(encode_all(*tokenizer_, line, small), encode_all(*tokenizer_, line, large));
}

TEST_P(LongText, ALineOf16MiBNeedsTheUsualMemory) {
  const std::string part = letters(kPiece);
  const EncodeOptions options;
  size_t bytes = 0;
  Error error;
  oxb_encoder* encoder = nullptr;
  ASSERT_EQ(oxb_encoder::measure(*tokenizer_, options, &bytes, &error), Status::kOk);
  std::vector<std::byte> memory(bytes);
  ASSERT_EQ(
      oxb_encoder::place(*tokenizer_, options, memory.data(), memory.size(), &encoder, &error),
      Status::kOk);
  oxb_decoder_options decoder_options = OXB_DECODER_OPTIONS_INIT;
  decoder_options.skip_special = 0;
  std::vector<std::byte> decoder_memory(oxb_decoder::bytes());
  oxb_decoder* decoder = nullptr;
  ASSERT_EQ(oxb_decoder::place(*tokenizer_, decoder_options, decoder_memory.data(),
                               decoder_memory.size(), &decoder, &error),
            Status::kOk);

  const std::string expected = GetParam().starts_with("wordpiece") ? "[UNK]" : "";
  std::string held, decoded;
  std::vector<int32_t> ids(4 * kPiece);
  std::vector<char> text(decoder->most_text());
  size_t compared = 0;
  for (size_t there = kPiece; there <= kLine; there += kPiece) {
    held += part;
    const bool last = there == kLine;
    Encoded encoded;
    ASSERT_EQ(encoder->run(held, last, ids, &encoded, &error), Status::kOk) << error.text;
    ASSERT_LT(encoded.count, ids.size());
    held.erase(0, encoded.consumed);
    // As oxbow.h has it.
    ASSERT_LE(held.size(), last ? 0 : size_t{3} * options.max_word_bytes);
    size_t count = 0;
    for (size_t i = 0; i < encoded.count; ++i) {
      ASSERT_EQ(decoder->run(ids[i], text, &count, &error), Status::kOk) << error.text;
      decoded.append(text.data(), count);
    }
    if (!expected.empty()) continue;
    for (const char letter : decoded) ASSERT_EQ(letter, part[compared++ % kPiece]) << compared;
    decoded.clear();
  }
  EXPECT_EQ(decoded, expected);
  EXPECT_EQ(compared, expected.empty() ? kLine : 0);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param.substr(0, info.param.find('/'));
}

INSTANTIATE_TEST_SUITE_P(Kinds, LongText,
                         ::testing::Values("gpt2/latin", "llama3/latin", "wordpiece/latin",
                                           "unigram/latin", "spbpe/latin"),
                         test_name);

}  // namespace
}  // namespace oxbow::testing
