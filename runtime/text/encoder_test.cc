#include "runtime/text/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/testing/tokenizer.h"

namespace oxbow {
namespace {

schema::TokenizerT chars() {
  schema::TokenizerT table;
  table.kind = schema::TokenizerKind::Char;
  table.code_points = {'\n', 'b', 'a', 0x1f600, 0xe9, 0x20ac};
  return table;
}

schema::TokenizerT bytes() {
  schema::TokenizerT table;
  table.kind = schema::TokenizerKind::Byte;
  return table;
}

/// An encoder that is asked once and may fail.
class Attempt {
 public:
  Attempt(const Tokenizer& tokenizer, std::string_view text, size_t room = 100)
      : memory_(1 << 20), ids_(room) {
    const EncodeOptions options;
    if (oxb_encoder::place(tokenizer, options, memory_.data(), memory_.size(), &encoder_,
                           &error_) == Status::kOk) {
      status = run(text);
    }
  }
  Status run(std::string_view text) {
    return encoder_->run({text.data(), text.size()}, true, ids_, &encoded, &error_);
  }
  std::string error() const { return error_.text; }

  Encoded encoded;
  Status status = Status::kOk;

 private:
  std::vector<std::byte> memory_;
  std::vector<int32_t> ids_;
  oxb_encoder* encoder_ = nullptr;
  Error error_;
};

TEST(TextChars, EncodesAndDecodesInPiecesOfAnySize) {
  const OwnedTokenizer tokenizer(chars(), 6);
  const std::string text = "ab\né€😀a";
  for (const size_t chunk : {0, 1, 2, 5}) {
    for (const size_t room : {0, 1, 3}) {
      EncodeOptions options;
      options.chunk = chunk;
      options.room = room;
      const std::vector<int32_t> ids = encode_all(*tokenizer, text, options);
      EXPECT_EQ(ids, (std::vector<int32_t>{2, 1, 0, 4, 5, 3, 2}));
      EXPECT_EQ(decode_all(*tokenizer, ids), text);
    }
  }
}

TEST(TextChars, AnUnknownCharacterIsNamedWithItsPlace) {
  const OwnedTokenizer tokenizer(chars(), 6);
  const char* words = "text, byte 2: U+00FC 'ü' is not in the vocabulary of 6 characters";
  Attempt attempt(*tokenizer, "abüa");
  EXPECT_EQ(attempt.status, Status::kTextStopped) << "never a part of the text and OK";
  EXPECT_EQ(attempt.encoded.count, 2u);
  EXPECT_EQ(attempt.encoded.consumed, 2u);
  EXPECT_EQ(attempt.error(), words);
  EXPECT_EQ(attempt.run("üa"), Status::kTextStopped) << "it stays where it is";
  EXPECT_EQ(attempt.encoded.count, 0u);
  EXPECT_EQ(attempt.error(), words) << "counted from the beginning of the text";
}

TEST(TextChars, WhatLiesBeforeAnUnknownCharacterIsGivenFirstWhenThereIsLittleRoom) {
  const OwnedTokenizer tokenizer(chars(), 6);
  Attempt attempt(*tokenizer, "abüa", 1);
  EXPECT_EQ(attempt.status, Status::kOk);
  EXPECT_EQ(attempt.encoded.count, 1u);
  ASSERT_EQ(attempt.encoded.consumed, 2u);
  EXPECT_EQ(attempt.run("üa"), Status::kOk);
  EXPECT_EQ(attempt.encoded.count, 1u);
  EXPECT_EQ(attempt.run("üa"), Status::kTextStopped);
  EXPECT_EQ(attempt.error(), "text, byte 2: U+00FC 'ü' is not in the vocabulary of 6 characters");
}

TEST(TextChars, MalformedTextIsNamedWithItsPlace) {
  const OwnedTokenizer tokenizer(chars(), 6);
  const Attempt malformed(*tokenizer, "\xff");
  EXPECT_EQ(malformed.error(), "text, byte 0: 0xff does not begin a character in UTF-8");
  const Attempt cut_off(*tokenizer, "\xe2\x82");
  EXPECT_EQ(cut_off.error(), "text, byte 0: 0xe2 does not begin a character in UTF-8");
}

TEST(TextChars, AreNotChangedFirst) {
  schema::TokenizerT table = chars();
  table.steps.push_back(std::make_unique<schema::NormalStepT>());
  EXPECT_EQ(OwnedTokenizer(table, 6).status(), Status::kFileCorrupt)
      << "the place of one that is missing would not be known";
}

TEST(TextChars, TheLowerOfTwoIdsWins) {
  schema::TokenizerT table = chars();
  table.code_points = {'x', 'a', 'a'};
  const OwnedTokenizer tokenizer(table, 3);
  EXPECT_EQ(encode_all(*tokenizer, "a"), std::vector<int32_t>{1});
}

TEST(TextChars, WhatIsNoCharacterIsRefused) {
  for (const uint32_t value : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu}) {
    schema::TokenizerT table = chars();
    table.code_points = {'a', value};
    const OwnedTokenizer tokenizer(table, 2);
    EXPECT_EQ(tokenizer.status(), Status::kFileCorrupt);
    EXPECT_NE(std::string(tokenizer.error()).find("token 1"), std::string::npos);
  }
}

TEST(TextBytes, EveryByteIsATokenAndOnlyCharactersComeBack) {
  const OwnedTokenizer tokenizer(bytes(), 256);
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  const std::vector<int32_t> ids = encode_all(*tokenizer, text);
  ASSERT_EQ(ids.size(), 256u);
  for (int i = 0; i < 256; ++i) ASSERT_EQ(ids[static_cast<size_t>(i)], i);
  std::string expected = text.substr(0, 128);
  for (int i = 0; i < 128; ++i) expected += "\xef\xbf\xbd";
  EXPECT_EQ(decode_all(*tokenizer, ids), expected);
  EXPECT_EQ(decode_all(*tokenizer, encode_all(*tokenizer, "né€😀")), "né€😀");
  EXPECT_EQ(decode_all(*tokenizer, {0xe2, 0x82}), "\xef\xbf\xbd");
}

TEST(TextBytes, AVocabularyOfAnotherSizeIsRefused) {
  EXPECT_EQ(OwnedTokenizer(bytes(), 255).status(), Status::kFileCorrupt);
  EXPECT_EQ(OwnedTokenizer(bytes(), 257).status(), Status::kFileCorrupt);
}

TEST(TextTemplate, SurroundsTheTextOnce) {
  schema::TokenizerT table = bytes();
  table.before = {1, 2};
  table.after = {3};
  const OwnedTokenizer tokenizer(table, 256);
  EncodeOptions options;
  options.add_template = 1;
  for (const size_t room : {0, 1, 2, 5}) {
    options.room = room;
    EXPECT_EQ(encode_all(*tokenizer, "ab", options), (std::vector<int32_t>{1, 2, 'a', 'b', 3}));
    EXPECT_EQ(encode_all(*tokenizer, "", options), (std::vector<int32_t>{1, 2, 3}));
  }
  options.add_template = 0;
  EXPECT_EQ(encode_all(*tokenizer, "ab", options), (std::vector<int32_t>{'a', 'b'}));
}

TEST(TextTemplate, ATokenTheModelLacksIsRefused) {
  schema::TokenizerT table = bytes();
  table.before = {256};
  EXPECT_EQ(OwnedTokenizer(table, 256).status(), Status::kFileCorrupt);
}

TEST(TextEncoder, TooLittleMemoryIsRefused) {
  const OwnedTokenizer tokenizer(bytes(), 256);
  const EncodeOptions options;
  size_t needed = 0;
  Error error;
  ASSERT_EQ(oxb_encoder::measure(*tokenizer, options, &needed, &error), Status::kOk);
  std::vector<std::byte> memory(needed);
  oxb_encoder* encoder = nullptr;
  EXPECT_EQ(oxb_encoder::place(*tokenizer, options, memory.data(), needed - 1, &encoder, &error),
            Status::kBufferTooSmall);
  EXPECT_EQ(oxb_encoder::place(*tokenizer, options, memory.data(), needed, &encoder, &error),
            Status::kOk);
}

/// A kind that gives an id for each word, and stops at one of more than 64 bytes.
const TokenizerDef kWords = {.kind = schema::TokenizerKind::Byte,
                             .name = "words",
                             .encode = [](EncoderState& state, std::span<const char> text,
                                          bool last, size_t* consumed, Error* error) {
                               while (*consumed < text.size() && state.pending.left() > 0) {
                                 const std::span<const char> rest = text.subspan(*consumed);
                                 const auto space = static_cast<size_t>(
                                     std::find(rest.begin(), rest.end(), ' ') - rest.begin());
                                 if (space > 64)
                                   return fail(error, Status::kTextStopped, "a long word");
                                 if (space == rest.size() && !last) return Status::kOk;
                                 state.pending.add(static_cast<int32_t>(space));
                                 *consumed += std::min(space + 1, rest.size());
                               }
                               return Status::kOk;
                             }};

/// Where an encoder with words of 64 bytes stops in a text that comes in pieces.
size_t stop_of(const Tokenizer& tokenizer, const std::string& text, size_t piece) {
  EncodeOptions options;
  options.max_word_bytes = 64;
  std::vector<std::byte> memory(1 << 17);
  std::vector<int32_t> ids(text.size());
  oxb_encoder* encoder = nullptr;
  Error error;
  EXPECT_EQ(oxb_encoder::place(tokenizer, options, memory.data(), memory.size(), &encoder, &error),
            Status::kOk);
  Status status = Status::kOk;
  for (size_t taken = 0, there = 0; status == Status::kOk && taken < text.size();) {
    there = std::min(text.size(), there + piece);
    Encoded encoded;
    status = encoder->run(std::span(text).subspan(taken, there - taken), there == text.size(), ids,
                          &encoded, &error);
    taken += encoded.consumed;
  }
  EXPECT_EQ(status, Status::kTextStopped);
  size_t place = 0;
  EXPECT_EQ(std::sscanf(error.text, "text, byte %zu: a long word", &place), 1) << error.text;
  return place;
}

TEST(TextEncoder, AStopIsToldByTheWordsFirstByteWhereTextIsNotChanged) {
  const OwnedTokenizer bytes_tokenizer(bytes(), 256);
  Tokenizer tokenizer = *bytes_tokenizer;
  tokenizer.def = &kWords;
  const std::string text = "a few words " + std::string(100, 'b') + " c";
  for (const size_t piece : {size_t{1}, size_t{50}, text.size()}) {
    EXPECT_EQ(stop_of(tokenizer, text, piece), 12u);
  }
}

TEST(TextEncoder, WhereTextIsChangedFirstAStopIsToldByAByteOfTheWord) {
  schema::TokenizerT table = bytes();
  table.steps.push_back(std::make_unique<schema::NormalStepT>());  // Holds white space back.
  table.steps[0]->strip_right = true;
  const OwnedTokenizer bytes_tokenizer(table, 256);
  ASSERT_EQ(bytes_tokenizer.status(), Status::kOk) << bytes_tokenizer.error();
  Tokenizer tokenizer = *bytes_tokenizer;
  tokenizer.def = &kWords;
  for (size_t before = 0; before < 600; before += before < 40 ? 1 : 37) {
    for (const size_t size : {65u, 70u, 1000u}) {
      std::string text;
      while (text.size() < before) text += std::string(text.size() % 7, 'a') + " ";
      const size_t begin = text.size();
      text += std::string(size, 'b') + " " + std::string(5000, 'c');
      for (const size_t piece : {size_t{1}, size_t{50}, text.size()}) {
        const size_t place = stop_of(tokenizer, text, piece);
        EXPECT_GE(place, begin) << size << " in pieces of " << piece;
        EXPECT_LT(place, begin + size) << size << " in pieces of " << piece;
      }
    }
  }
}

/// Bytes that kWaiting looked at.
size_t looked_at = 0;

/// A kind whose words never end before the text does.
const TokenizerDef kWaiting = {
    .kind = schema::TokenizerKind::Byte,
    .name = "waiting",
    .encode = [](EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
                 Error*) {
      looked_at += text.size();
      if (last && !text.empty()) state.pending.add(static_cast<int32_t>(text.size() & 0x7fffffff));
      if (last) *consumed = text.size();
      return Status::kOk;
    }};

TEST(TextEncoder, ALongWordInManyPiecesIsNotLookedThroughForEachOfThem) {
  const OwnedTokenizer bytes_tokenizer(bytes(), 256);
  Tokenizer tokenizer = *bytes_tokenizer;
  tokenizer.def = &kWaiting;
  const std::string text(1 << 20, 'a');
  EncodeOptions options;
  options.max_word_bytes = 1 << 20;
  options.chunk = 100;
  looked_at = 0;
  EXPECT_EQ(encode_all(tokenizer, text, options), std::vector<int32_t>{1 << 20});
  EXPECT_LT(looked_at, 5 * text.size());
}

TEST(Tokenizer, EveryKindOfTheFormatIsKnownByItsNumberInTheInterface) {
  for (const schema::TokenizerKind kind : schema::EnumValuesTokenizerKind()) {
    const TokenizerDef* def = find_tokenizer_def(kind);
    if (kind == schema::TokenizerKind::None) {
      EXPECT_EQ(def, nullptr);
      continue;
    }
    ASSERT_NE(def, nullptr) << schema::EnumNameTokenizerKind(kind);
    EXPECT_EQ(static_cast<int>(def->public_kind), static_cast<int>(kind)) << def->name;
    EXPECT_TRUE(def->check != nullptr && def->encode != nullptr && def->decode != nullptr);
  }
}

TEST(TextDecoder, UnknownIdsAndTooLittleRoomAreRefused) {
  const OwnedTokenizer tokenizer(chars(), 6);
  oxb_decoder_options options = OXB_DECODER_OPTIONS_INIT;
  std::vector<std::byte> memory(oxb_decoder::bytes());
  oxb_decoder* decoder = nullptr;
  Error error;
  ASSERT_EQ(oxb_decoder::place(*tokenizer, options, memory.data(), memory.size(), &decoder, &error),
            Status::kOk);
  std::vector<char> text(decoder->most_text());
  size_t count = 0;
  EXPECT_EQ(decoder->run(-1, text, &count, &error), Status::kInvalidArgument);
  EXPECT_EQ(decoder->run(6, text, &count, &error), Status::kInvalidArgument);
  EXPECT_STREQ(error.text, "token 6 is not in the vocabulary of 6");
  EXPECT_EQ(decoder->run(0, std::span(text).first(text.size() - 1), &count, &error),
            Status::kBufferTooSmall);
}

}  // namespace
}  // namespace oxbow
