#include "converter/text/tokenizer/double_array.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/text/tables/trie.h"

namespace oxbow::convert {
namespace {

bool find(const Trie& trie, const std::string& text, uint32_t* number) {
  Trie::Walk walk = trie.walk();
  for (const char byte : text) {
    if (!walk.step(byte)) return false;
  }
  if (walk.ends()) *number = walk.value();
  return walk.ends();
}

TEST(DoubleArray, FindsExactlyItsStrings) {
  // A small alphabet, so that strings are beginnings of others and nearly so.
  std::mt19937 random(7);
  std::map<std::string, uint32_t> numbers;
  for (uint32_t i = 0; i < 20000; ++i) {
    std::string text(1 + random() % 12, ' ');
    for (char& byte : text) byte = static_cast<char>("ab\xff\x01\xe3\x80"[random() % 6]);
    numbers.emplace(text, i * 31);
  }
  const std::vector<uint32_t> units = build_double_array(numbers);
  const Trie trie(units);
  for (int i = 0; i < 100000; ++i) {
    std::string text(1 + random() % 13, ' ');
    for (char& byte : text) byte = static_cast<char>("ab\xff\x01\xe3\x80"[random() % 6]);
    uint32_t number = 0;
    const auto expected = numbers.find(text);
    ASSERT_EQ(find(trie, text, &number), expected != numbers.end());
    if (expected != numbers.end()) {
      ASSERT_EQ(number, expected->second);
    }
  }
  for (const auto& [text, expected] : numbers) {
    uint32_t number = 0;
    ASSERT_TRUE(find(trie, text, &number));
    ASSERT_EQ(number, expected);
  }
}

TEST(DoubleArray, AZeroByteLeadsNowhere) {
  const std::vector<uint32_t> units = build_double_array({{"[MASK]", 1}, {"[", 2}, {"ab", 3}});
  const Trie trie(units);
  using namespace std::string_literals;
  for (const std::string& text : {"\0[MASK]"s, "[\0MASK]"s, "[M\0ASK]"s, "[MASK]\0"s, "\0ab"s}) {
    uint32_t number = 0;
    EXPECT_FALSE(find(trie, text, &number)) << text;
  }
}

TEST(DoubleArray, ManyStringsStayReachable) {
  std::map<std::string, uint32_t> numbers;
  std::mt19937 random(1);
  // Long ones, so that there are many places in the array without many strings to put there.
  for (uint32_t i = 0; i < 60000; ++i) {
    std::string text(35 + random() % 10, ' ');
    for (char& byte : text) byte = static_cast<char>(1 + random() % 255);
    numbers[text] = i;
  }
  const std::vector<uint32_t> units = build_double_array(numbers);
  EXPECT_GT(units.size(), size_t{1} << 21);
  const Trie trie(units);
  for (const auto& [text, expected] : numbers) {
    uint32_t number = 0;
    ASSERT_TRUE(find(trie, text, &number));
    ASSERT_EQ(number, expected);
  }
}

TEST(DoubleArray, TheLongestMatchAndAnOpenEndAreTold) {
  const std::vector<uint32_t> units = build_double_array({{"ab", 1}, {"abcd", 2}});
  const Trie trie(units);
  const auto longest = [&](std::string_view text) {
    Trie::Match match;
    trie.longest({text.data(), text.size()}, &match);
    return match;
  };
  EXPECT_EQ(longest("abcx").bytes, 2u);
  EXPECT_EQ(longest("abcx").value, 1u);
  EXPECT_FALSE(longest("abcx").open);
  EXPECT_EQ(longest("abcd").value, 2u);
  EXPECT_TRUE(longest("abc").open);
  EXPECT_EQ(longest("x").bytes, 0u);
}

TEST(DoubleArray, WhatItCannotHoldIsLeftOut) {
  EXPECT_TRUE(build_double_array({}).empty());
  EXPECT_TRUE(build_double_array({{"", 1}}).empty());
  const std::vector<uint32_t> units = build_double_array({{std::string("a\0b", 3), 1}, {"a", 2}});
  uint32_t number = 0;
  EXPECT_TRUE(find(Trie(units), "a", &number));
  EXPECT_FALSE(find(Trie(units), std::string("a\0b", 3), &number));
}

TEST(DoubleArray, AnArrayOfAnythingIsWalkedWithoutLeavingIt) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> units(random() % 300);
    for (uint32_t& unit : units) unit = static_cast<uint32_t>(random());
    std::string text(100, ' ');
    for (char& byte : text) byte = static_cast<char>(random());
    Trie::Match match;
    Trie(units).longest(text, &match);
    EXPECT_LE(match.bytes, text.size());
  }
}

}  // namespace
}  // namespace oxbow::convert
