#include "runtime/text/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace oxbow {
namespace {

/// Letters, digits and spaces of ASCII.
class AsciiClasses {
 public:
  AsciiClasses() : block_of_(CharClasses::kBlockCount, 1), blocks_(2 * CharClasses::kBlock) {
    block_of_[0] = 0;
    for (int c = 0; c < 128; ++c) {
      const int bits = std::isalpha(c) ? kLetter : std::isdigit(c) ? kNumber : 0;
      blocks_[static_cast<size_t>(c)] = static_cast<uint8_t>(std::isspace(c) ? kSpace : bits);
    }
  }
  CharClasses view() const { return {block_of_, blocks_}; }

 private:
  std::vector<uint16_t> block_of_;
  std::vector<uint8_t> blocks_;
};

/// The words of a text of which `chunk` more bytes are there at each call.
std::vector<std::string> words_of(schema::WordSplit split, const std::string& text, size_t chunk) {
  const AsciiClasses tables;
  const CharClasses classes = tables.view();
  const WordSplitter splitter(split, 0, classes);
  std::vector<std::string> words;
  WordRest rest = WordRest::kNone;
  size_t at = 0, seen = 0;
  while (at < text.size()) {
    seen = std::min(text.size(), std::max(seen, at + 1));
    const bool last = seen == text.size();
    const SplitWord word = splitter.next(std::span(text.data() + at, seen - at), last, rest);
    if (rest == WordRest::kNone && word.bytes > 0) words.emplace_back();
    if (word.bytes > 0) words.back().append(text, at, word.bytes);
    at += word.bytes;
    rest = word.open && (word.bytes > 0 || rest != WordRest::kNone) ? word.rest : WordRest::kNone;
    if (word.open) seen = std::min(text.size(), seen + chunk);
  }
  return words;
}

TEST(WordSplitter, DigitsOfSmolLmAreWordsAndEndTheTextBeforeThem) {
  const std::vector<std::string> expected = {"in", " ",  "1",  "9",    "8",  "4", ",", "  ",
                                             "2",  "nd", "  ", " one", "'s", " ", "3"};
  for (const size_t chunk : {1, 2, 5, 100}) {
    EXPECT_EQ(words_of(schema::WordSplit::Gpt2Digits, "in 1984,  2nd   one's 3", chunk), expected)
        << chunk;
  }
}

TEST(WordSplitter, DigitsOfGpt2AreOneWordWithTheSpaceBeforeThem) {
  const std::vector<std::string> expected = {"in", " 1984", ",", " ", " 2", "nd"};
  for (const size_t chunk : {1, 3, 100}) {
    EXPECT_EQ(words_of(schema::WordSplit::Gpt2, "in 1984,  2nd", chunk), expected) << chunk;
  }
}

}  // namespace
}  // namespace oxbow
