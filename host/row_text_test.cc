#include "host/row_text.h"

#include <gtest/gtest.h>

namespace oxbow {
namespace {

/// Text in pieces of one byte, as a model may write it; a word that went to the next row leaves no trace.
std::string rows(const std::string& text, size_t columns) {
  RowText row;
  std::string out;
  for (const char byte : text) {
    const std::string shown = row.next({&byte, 1}, columns);
    const size_t escape = shown.find('\033');
    if (escape != std::string::npos) {
      out.resize(out.size() - std::stoul(shown.substr(escape + 2)));
      out += shown.substr(shown.find('K') + 1);
    } else {
      out += shown;
    }
  }
  return out;
}

TEST(RowText, WordsGoToTheNextRowWhole) {
  EXPECT_EQ(rows("one two three", 8), "one two \nthree");
  EXPECT_EQ(rows("one two three", 7), "one two\nthree");
  EXPECT_EQ(rows("a bc", 3), "a \nbc");
  EXPECT_EQ(rows("abc d", 3), "abc\nd");
  EXPECT_EQ(rows("ab\ncd ef", 5), "ab\ncd ef");
}

TEST(RowText, AWordThatNoRowHasRoomForIsCut) {
  EXPECT_EQ(rows("abcdefgh", 3), "abc\ndef\ngh");
  EXPECT_EQ(rows("a bcdefgh", 4), "a \nbcde\nfgh");
}

TEST(RowText, RowsAreNotEndedWhereNothingIsKnownOfThem) {
  EXPECT_EQ(rows("one two three", 0), "one two three");
}

TEST(RowText, APieceMayHoldManyRows) {
  RowText row;
  EXPECT_EQ(row.next("one two three ", 9), "one two t\033[1D\033[K\nthree ");
  EXPECT_EQ(row.next("fo", 9), "fo");
  EXPECT_EQ(row.next("ur", 9), "u\033[3D\033[K\nfour");
}

TEST(RowText, WideCharactersTakeTwoColumnsAndAccentsNone) {
  EXPECT_EQ(columns_of("a\u00e4"), 2u);
  EXPECT_EQ(columns_of("\u6f22\u5b57"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(columns_of("\xff\xe6\xbc"), 2u);
  EXPECT_EQ(rows("\u6f22\u5b57\u6f22", 5), "\u6f22\u5b57\n\u6f22");
  EXPECT_EQ(rows("abcde\u0301 f", 5), "abcde\u0301\nf");
}

TEST(RowText, NothingIsObeyedAndNothingMalformedIsShown) {
  EXPECT_EQ(rows("a\033[2Jb", 0), "a\ufffd[2Jb");
  EXPECT_EQ(rows("a\r\nb\rc", 0), "a\nbc");
  EXPECT_EQ(rows("\xff\xe6\xbc|\xc2\x9b", 0), "\ufffd\ufffd|\ufffd");
  EXPECT_EQ(rows("a\tb", 0), "a\tb");
}

TEST(RowText, ACharacterThatIsNotWholeIsWaitedFor) {
  RowText row;
  EXPECT_FALSE(row.line_open());
  EXPECT_EQ(row.next("\xe6\xbc", 9), "");
  EXPECT_TRUE(row.line_open());
  EXPECT_EQ(row.next("\xa2", 9), "\u6f22");
  EXPECT_EQ(row.next("\xe6\n", 9), "\ufffd\n");
  EXPECT_FALSE(row.line_open());
}

}  // namespace
}  // namespace oxbow
