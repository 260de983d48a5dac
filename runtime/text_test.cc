#include "runtime/text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace oxbow {
namespace {

using Kind = Utf8Character::Kind;

Utf8Character read(std::string_view text) { return read_utf8({text.data(), text.size()}); }

TEST(TextUtf8, EveryCodePointComesBack) {
  for (uint32_t code_point = 0; code_point <= 0x10ffff; ++code_point) {
    if (!is_code_point(code_point)) continue;
    char bytes[4];
    const size_t count = write_utf8(code_point, bytes);
    const Utf8Character character = read_utf8({bytes, count});
    ASSERT_EQ(character.kind, Kind::kCharacter) << code_point;
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.bytes, count);
    for (size_t shorter = 0; shorter < count; ++shorter) {
      ASSERT_EQ(read_utf8({bytes, shorter}).kind, Kind::kIncomplete) << code_point;
    }
  }
}

TEST(TextUtf8, MalformedFormsAreRefusedAtOnce) {
  // Continuation first, overlong, surrogate, above U+10FFFF, no continuation.
  for (std::string_view text :
       {"\x80", "\xbf", "\xc0", "\xc1\x80", "\xe0\x80", "\xe0\x9f\xbf", "\xed\xa0", "\xed\xbf\xbf",
        "\xf0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90", "\xf5", "\xff", "\xc3(", "\xe2\x82(",
        "\xf0\x9f\x98("}) {
    EXPECT_EQ(read(text).kind, Kind::kMalformed) << testing::PrintToString(text);
  }
}

TEST(TextUtf8, OnlyEncodingsOfCodePointsAreAccepted) {
  // All sequences of two bytes: accepted ones must be what write_utf8 makes of them.
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char text[2] = {static_cast<char>(a), static_cast<char>(b)};
      const Utf8Character character = read_utf8(text);
      if (character.kind != Kind::kCharacter) continue;
      char bytes[4];
      ASSERT_EQ(write_utf8(character.code_point, bytes), character.bytes);
      ASSERT_EQ(std::string_view(bytes, character.bytes), std::string_view(text, character.bytes));
    }
  }
}

class TextChars : public testing::Test {
 protected:
  void SetUp() override {
    Error error;
    ASSERT_EQ(build_char_index(code_points_, order_, &index_, &error), Status::kOk) << error.text;
  }
  Status encode(std::string_view text, size_t capacity = 100) {
    ids_.assign(capacity, -1);
    const Status status =
        encode_chars(index_, {text.data(), text.size()}, ids_, &encoded_, &error_);
    ids_.resize(encoded_.count);
    return status;
  }

  std::vector<uint32_t> code_points_ = {'\n', 'b', 'a', 0x1f600, 0xe9, 0x20ac};
  std::vector<uint32_t> order_ = std::vector<uint32_t>(6);
  CharIndex index_;
  std::vector<int32_t> ids_;
  Encoded encoded_;
  Error error_;
};

TEST_F(TextChars, EncodesAndDecodes) {
  const std::string text = "ab\né€😀a";
  ASSERT_EQ(encode(text), Status::kOk) << error_.text;
  EXPECT_EQ(ids_, (std::vector<int32_t>{2, 1, 0, 4, 5, 3, 2}));
  EXPECT_EQ(encoded_.consumed, text.size());
  std::string back;
  for (int32_t id : ids_) {
    char bytes[8];
    size_t count = 0;
    ASSERT_EQ(decode_char(code_points_, id, bytes, &count, nullptr), Status::kOk);
    back.append(bytes, count);
  }
  EXPECT_EQ(back, text);
}

TEST_F(TextChars, AFullBufferIsTakenUpAgain) {
  const std::string text = "ab\né€😀a";
  std::vector<int32_t> all;
  for (size_t at = 0; at < text.size(); at += encoded_.consumed) {
    ASSERT_EQ(encode(std::string_view(text).substr(at), 2), Status::kOk);
    ASSERT_GT(encoded_.consumed, 0u);
    all.insert(all.end(), ids_.begin(), ids_.end());
  }
  EXPECT_EQ(all, (std::vector<int32_t>{2, 1, 0, 4, 5, 3, 2}));
  EXPECT_EQ(encode(text, 0), Status::kOk);
  EXPECT_EQ(encoded_.consumed, 0u);
}

TEST_F(TextChars, ATextThatEndsInsideACharacterStopsBeforeIt) {
  const std::string text = "a€";
  for (size_t cut : {1, 2, 3}) {
    ASSERT_EQ(encode(std::string_view(text).substr(0, cut)), Status::kOk);
    EXPECT_EQ(encoded_.count, 1u);
    EXPECT_EQ(encoded_.consumed, 1u);
  }
}

TEST_F(TextChars, AnUnknownCharacterIsNamedWithItsPlace) {
  EXPECT_EQ(encode("abüa"), Status::kInvalidArgument);
  EXPECT_STREQ(error_.text, "text, byte 2: U+00FC 'ü' is not in the vocabulary of 6 characters");
  EXPECT_EQ(ids_, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(encoded_.consumed, 2u);
}

TEST_F(TextChars, MalformedTextIsNamedWithItsPlace) {
  EXPECT_EQ(encode("a\xff"), Status::kInvalidArgument);
  EXPECT_STREQ(error_.text, "text, byte 1: 0xff does not begin a character in UTF-8");
  EXPECT_EQ(encoded_.count, 1u);
}

TEST_F(TextChars, UnknownIdsAreRefused) {
  char bytes[8];
  size_t count = 0;
  EXPECT_EQ(decode_char(code_points_, -1, bytes, &count, nullptr), Status::kInvalidArgument);
  EXPECT_EQ(decode_char(code_points_, 6, bytes, &count, &error_), Status::kInvalidArgument);
  EXPECT_STREQ(error_.text, "token 6 is not in the vocabulary of 6 characters");
}

TEST(TextCharIndex, TheLowerOfTwoIdsWins) {
  const std::vector<uint32_t> code_points = {'x', 'a', 'a'};
  std::vector<uint32_t> order(3);
  CharIndex index;
  ASSERT_EQ(build_char_index(code_points, order, &index, nullptr), Status::kOk);
  int32_t id = -1;
  Encoded encoded;
  ASSERT_EQ(encode_chars(index, std::span("a", 1), {&id, 1}, &encoded, nullptr), Status::kOk);
  EXPECT_EQ(id, 1);
}

TEST(TextCharIndex, WhatIsNoCharacterIsRefused) {
  for (uint32_t value : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu}) {
    const std::vector<uint32_t> code_points = {'a', value};
    std::vector<uint32_t> order(2);
    CharIndex index;
    Error error;
    EXPECT_EQ(build_char_index(code_points, order, &index, &error), Status::kFileCorrupt);
    EXPECT_NE(std::string(error.text).find("token 1"), std::string::npos) << error.text;
  }
}

TEST(TextCharIndex, AnEmptyVocabularyKnowsNoCharacter) {
  CharIndex index;
  ASSERT_EQ(build_char_index({}, {}, &index, nullptr), Status::kOk);
  int32_t id = -1;
  Encoded encoded;
  EXPECT_EQ(encode_chars(index, std::span("a", 1), {&id, 1}, &encoded, nullptr),
            Status::kInvalidArgument);
}

TEST(TextBytes, EveryByteComesBack) {
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  std::vector<int32_t> ids(256);
  Encoded encoded;
  ASSERT_EQ(encode_bytes(256, text, ids, &encoded, nullptr), Status::kOk);
  EXPECT_EQ(encoded.count, 256u);
  for (int i = 0; i < 256; ++i) {
    ASSERT_EQ(ids[static_cast<size_t>(i)], i);
    char bytes[8];
    size_t count = 0;
    ASSERT_EQ(decode_byte(257, i, bytes, &count, nullptr), Status::kOk);
    ASSERT_EQ(count, 1u);
    ASSERT_EQ(bytes[0], text[static_cast<size_t>(i)]);
  }
  char bytes[8];
  size_t count = 0;
  EXPECT_EQ(decode_byte(257, 256, bytes, &count, nullptr), Status::kInvalidArgument);
  EXPECT_EQ(decode_byte(257, -1, bytes, &count, nullptr), Status::kInvalidArgument);
}

TEST(TextBytes, AByteOutsideASmallVocabularyIsRefused) {
  const std::string text = "ab\xc3";
  std::vector<int32_t> ids(8);
  Encoded encoded;
  Error error;
  EXPECT_EQ(encode_bytes(128, text, ids, &encoded, &error), Status::kInvalidArgument);
  EXPECT_STREQ(error.text, "text, byte 2: the value 195 is not in the vocabulary of 128 bytes");
  EXPECT_EQ(encoded.count, 2u);
}

TEST(TextBytes, AFullBufferStops) {
  std::vector<int32_t> ids(2);
  Encoded encoded;
  ASSERT_EQ(encode_bytes(256, std::string_view("abc"), ids, &encoded, nullptr), Status::kOk);
  EXPECT_EQ(encoded.count, 2u);
  EXPECT_EQ(encoded.consumed, 2u);
}

}  // namespace
}  // namespace oxbow
