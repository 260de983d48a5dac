#include "runtime/text/utf8.h"

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

TEST(TextUtf8, MalformedTextIsReplacedByWhatMightHaveBeenACharacter) {
  const auto malformed = [](std::string_view text) {
    return malformed_bytes({text.data(), text.size()});
  };
  EXPECT_EQ(malformed("\xff"), 1u);
  EXPECT_EQ(malformed("\x80\x80"), 1u);
  EXPECT_EQ(malformed("\xe2\x82("), 2u);
  EXPECT_EQ(malformed("\xf0\x9f\x98("), 3u);
  EXPECT_EQ(malformed("\xf0\x9f\x98"), 3u);
  // A surrogate: its second byte cannot follow the first.
  EXPECT_EQ(malformed("\xed\xa0\x80"), 1u);
}

}  // namespace
}  // namespace oxbow
