#include "converter/text/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "host/testing/paths.h"
#include "runtime/text/tables/char_classes.h"

// The answers of the original library for every code point: tests/tokenizers/unicode.
namespace oxbow::convert {
namespace {

constexpr uint32_t kCodePoints = 0x110000;

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(testing::source_dir() + "/tests/tokenizers/unicode/" + name + ".txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

/// For each code point the number behind its range, or 1.
std::vector<uint8_t> ranges_of(const std::string& name) {
  std::vector<uint8_t> numbers(kCodePoints);
  for (const std::string& line : lines_of(name)) {
    unsigned first = 0, last = 0, number = 1;
    EXPECT_GE(std::sscanf(line.c_str(), "%x..%x %u", &first, &last, &number), 2) << line;
    for (unsigned point = first; point <= last; ++point) {
      numbers[point] = static_cast<uint8_t>(number);
    }
  }
  return numbers;
}

using Mapping = std::map<uint32_t, std::u32string>;

Mapping mapping_of(const std::string& name) {
  Mapping mapping;
  for (const std::string& line : lines_of(name)) {
    std::istringstream fields(line);
    uint32_t point = 0, part = 0;
    std::string arrow;
    fields >> std::hex >> point >> arrow;
    while (fields >> part) mapping[point].push_back(static_cast<char32_t>(part));
  }
  return mapping;
}

bool is_surrogate(uint32_t point) { return point >= 0xd800 && point < 0xe000; }

void expect_same(const std::string& name, std::span<const CodePointRange> ranges) {
  const std::vector<uint8_t> expected = ranges_of(name);
  for (uint32_t point = 0; point < kCodePoints; ++point) {
    if (is_surrogate(point)) continue;
    ASSERT_EQ(contains(ranges, point), expected[point] != 0) << name << " 0x" << std::hex << point;
  }
}

void expect_same(const std::string& name,
                 const std::function<std::u32string(uint32_t)>& replacement) {
  const Mapping expected = mapping_of(name);
  for (uint32_t point = 0; point < kCodePoints; ++point) {
    const auto found = expected.find(point);
    const std::u32string text =
        found == expected.end() ? std::u32string(1, static_cast<char32_t>(point)) : found->second;
    ASSERT_EQ(replacement(point), text) << name << " 0x" << std::hex << point;
  }
}

TEST(Unicode, SetsAreThoseOfTheOriginalLibrary) {
  expect_same("letters", CodePoints::letters());
  expect_same("numbers", CodePoints::numbers());
  expect_same("white_space", CodePoints::white_space());
  expect_same("word_characters", CodePoints::word_characters());
  expect_same("bert_white_space", CodePoints::white_space());
  expect_same("bert_punctuation", CodePoints::bert_punctuation());
  expect_same("bert_marks", CodePoints::bert_marks());
  expect_same("marks", CodePoints::marks());
  expect_same("bert_controls", CodePoints::bert_controls());
}

TEST(Unicode, LowerCaseIsThatOfTheOriginalLibrary) { expect_same("lower_case", lower_case); }

TEST(Unicode, DecompositionsAreThoseOfTheOriginalLibrary) {
  expect_same("decompositions", decompose);
}

TEST(Unicode, AccentsAreStrippedAsByTheOriginalLibrary) {
  expect_same("bert_stripped", [](uint32_t point) {
    // Those that leave nothing are in a file of their own.
    if (contains(CodePoints::bert_marks(), point)) {
      return std::u32string(1, static_cast<char32_t>(point));
    }
    std::u32string parts = decompose(point);
    std::erase_if(parts, [](char32_t part) { return contains(CodePoints::bert_marks(), part); });
    return parts;
  });
}

TEST(Unicode, CombiningClassesAreThoseOfTheOriginalLibrary) {
  const std::vector<uint8_t> expected = ranges_of("combining_classes");
  for (uint32_t point = 0; point < kCodePoints; ++point) {
    ASSERT_EQ(combining_class(point), expected[point]) << std::hex << point;
  }
}

TEST(Unicode, ATableOfClassesHoldsTheBitsOfEveryCodePoint) {
  const ClassRule rules[] = {{CodePoints::letters(), kLetter},
                             {CodePoints::white_space(), kSpace},
                             {CodePoints::word_characters(), kWordCharacter}};
  const schema::CharClassesT table = build_char_classes(rules);
  ASSERT_EQ(table.block_of.size(), CharClasses::kBlockCount);
  const CharClasses classes(table.block_of, table.blocks);
  for (uint32_t point = 0; point < kCodePoints; ++point) {
    uint8_t bits = 0;
    for (const ClassRule& rule : rules) {
      if (contains(rule.ranges, point)) bits |= rule.bits;
    }
    ASSERT_EQ(classes.of(point), bits) << std::hex << point;
  }
  // Most of the 8,704 blocks are alike.
  EXPECT_LT(table.blocks.size(), 300 * CharClasses::kBlock);
}

TEST(Unicode, CharactersOfARunAreAlike) {
  uint32_t next = 0;
  for (const CodePointRange& run : alike_code_points()) {
    ASSERT_TRUE(run.first == next || (next == 0xd800 && run.first == 0xe000)) << next;
    ASSERT_LE(run.first, run.last);
    next = run.last + 1;
    const auto same = [&](uint32_t point) {
      return std::u32string(1, static_cast<char32_t>(point));
    };
    for (uint32_t point = run.first; point <= run.last; ++point) {
      for (const auto ranges :
           {CodePoints::white_space(), CodePoints::word_characters(), CodePoints::marks(),
            CodePoints::bert_punctuation(), CodePoints::bert_marks(), CodePoints::bert_controls(),
            CodePoints::chinese()}) {
        ASSERT_EQ(contains(ranges, point), contains(ranges, run.first)) << point;
      }
      // What becomes another character, or has a place among marks, is alone.
      if (run.first == run.last) continue;
      ASSERT_EQ(lower_case(point), same(point));
      ASSERT_EQ(decompose(point), same(point));
      ASSERT_EQ(decompose_compatible(point), same(point));
      ASSERT_EQ(combining_class(point), 0);
    }
  }
  EXPECT_EQ(next, 0x110000u);
}

}  // namespace
}  // namespace oxbow::convert
