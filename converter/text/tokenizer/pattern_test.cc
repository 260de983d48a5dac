#include "converter/text/tokenizer/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "converter/text/tokenizer/gguf_patterns.h"
#include "converter/text/tokenizer/unicode.h"
#include "host/errors.h"
#include "runtime/text/pattern.h"
#include "runtime/text/split.h"
#include "runtime/text/tokenizer.h"

namespace oxbow::convert {
namespace {

using Words = std::vector<std::string>;
using Behaviour = schema::SplitBehaviour;

schema::TokenizerT tables_of(const std::vector<SplitPattern>& patterns) {
  schema::TokenizerT table;
  write_patterns("test", patterns, table);
  return table;
}

/// The tables of some patterns, as the runtime reads them.
class Cutter {
 public:
  explicit Cutter(const std::vector<SplitPattern>& patterns) : Cutter(tables_of(patterns)) {}
  explicit Cutter(const schema::TokenizerT& table) {
    builder_.Finish(schema::CreateTokenizer(builder_, &table));
    table_ = flatbuffers::GetRoot<schema::Tokenizer>(builder_.GetBufferPointer());
    Error error;
    const auto* classes = table_->pattern_classes();
    EXPECT_EQ(
        set_.set_classes(CharClasses({classes->block_of()->data(), classes->block_of()->size()},
                                     {classes->blocks()->data(), classes->blocks()->size()}),
                         table_->pattern_class_count(), &error),
        Status::kOk)
        << error.text;
    for (const schema::WordPattern* pattern : *table_->patterns()) {
      EXPECT_EQ(set_.add(*pattern, &error), Status::kOk) << error.text;
    }
  }

  /// Words of a text of which `chunk` more bytes are there at each call; words are taken in parts of at most `most`.
  Words cut(const std::string& text, size_t chunk, size_t most) const {
    PatternState state;
    Words words;
    bool begun = false;
    size_t calls = 0;
    for (size_t taken = 0, there = 0; taken < text.size();) {
      if (++calls > 100 * text.size()) {
        ADD_FAILURE() << "goes in circles at " << taken;
        return words;
      }
      const bool last = there == text.size();
      PatternCutter cutter(set_, state, std::span(text).subspan(taken, there - taken), last);
      const PatternWord word = there == taken ? PatternWord{0, true} : cutter.next(most);
      if (word.open && word.bytes <= most) {
        if (last) {
          ADD_FAILURE() << "stands still at " << taken;
          return words;
        }
        there = std::min(there + chunk, text.size());
        continue;
      }
      if (word.bytes == 0) {
        cutter.end_word();
        begun = false;
        continue;
      }
      // Part of a word that goes on.
      const size_t bytes = word.open ? most : word.bytes;
      if (!word.dropped) {
        if (!begun) words.emplace_back();
        words.back() += text.substr(taken, bytes);
      }
      begun = word.open;
      cutter.take(bytes);
      taken += bytes;
    }
    return words;
  }

 private:
  flatbuffers::FlatBufferBuilder builder_;
  const schema::Tokenizer* table_ = nullptr;
  PatternSet set_;
};

Words cut(const std::vector<SplitPattern>& patterns, const std::string& text) {
  const Cutter cutter(patterns);
  const Words words = cutter.cut(text, text.size(), 1000);
  for (const size_t chunk : {1, 3}) {
    EXPECT_EQ(cutter.cut(text, chunk, 1000), words) << chunk;
    EXPECT_EQ(cutter.cut(text, chunk, 4), words) << chunk;
  }
  return words;
}
Words cut(const char* pattern, const std::string& text) {
  return cut(std::vector<SplitPattern>{{pattern}}, text);
}

/// As llama.cpp cuts text for a name.
Words cut_for(const char* name, const std::string& text) {
  return cut(patterns_of(*find_gguf_cut(name)), text);
}

TEST(Pattern, OfKimiKeepsChineseApart) {
  EXPECT_EQ(cut_for("kimi-k2", "ab中文、漢字 Don't HTMLParser 12345/\n/ x"),
            (Words{"ab", "中文", "、", "漢字", " Don't", " HTMLParser", " ", "123", "45", "/\n",
                   "/", " x"}));
  EXPECT_EQ(cut_for("kimi-k2", "カナ漢字かな한국 ÉTÉ'S"),
            (Words{"カナ", "漢字", "かな한국", " ÉTÉ'S"}));
}

TEST(Pattern, OfFalconKnowsThePunctuationOfTheOriginal) {
  // U+2E43 is younger, and so goes with the space before it.
  EXPECT_EQ(cut_for("falcon", "a «b» \u2e43 $~ 1234"),
            (Words{"a", " ", "«", "b", "»", " \u2e43", " ", "$~", " ", "123", "4"}));
}

TEST(Pattern, OfChameleonKeepsImagesAndSingleDigitsAndSigns) {
  EXPECT_EQ(cut_for("chameleon", "see <sentinel:12>IMGIMGABZ don't\t12   x  y!?"),
            (Words{"see", " ",  "<", "sentinel", ":",  "1",  "2",  ">", "IMGIMGABZ", " don", "'",
                   "t",   "\t", "1", "2",        "  ", " x", "  ", "y", "!",         "?"}));
}

TEST(Pattern, OfNewerModelsCutsAsTheirTokenizersDo) {
  const char* text = "Don't e\u0301x 12345  n\n\ny!/\n";
  EXPECT_EQ(cut_for("qwen35", text), (Words{"Don", "'t", " e\u0301x", " ", "1", "2", "3", "4", "5",
                                            " ", " n", "\n\n", "y", "!/\n"}));
  EXPECT_EQ(cut_for("ufakzeka", text), (Words{"Don", "'t", " e", "\u0301x", " ", "1", "2", "3", "4",
                                              "5", " ", " n", "\n\n", "y", "!/\n"}));
  EXPECT_EQ(cut_for("minicpm5", "a 1234 \n"), (Words{"a", " ", "123", "4", " \n"}));
  EXPECT_EQ(cut_for("laguna", "a \n\n b"), (Words{"a", " ", "\n\n", " b"}));
  EXPECT_EQ(cut_for("exaone-moe", "\uac00 \ub098 x!\n\n"), (Words{"\uac00 \ub098 x", "!\n", "\n"}));
  EXPECT_EQ(cut_for("spark2_5", "a1234!\n\n \u4e2d\u6587"),
            (Words{"a", "1", "2", "3", "4", "!", "\n", "\n", " ", "\u4e2d\u6587"}));
  EXPECT_EQ(cut_for("youtu", "ab\ud55c\uad6d\u3001\u4e2dX"),
            (Words{"ab", "\ud55c\uad6d", "\u3001", "\u4e2d", "X"}));
  const std::string spaces(13, ' ');
  EXPECT_EQ(cut_for("jais-2", "a" + spaces + "b"),
            (Words{"a", std::string(8, ' '), std::string(4, ' '), " b"}));
}

TEST(Pattern, TakesTheFirstAlternativeThatMatches) {
  EXPECT_EQ(cut("ab|abc|c", "abc"), (Words{"ab", "c"}));
  EXPECT_EQ(cut("abc|ab|c", "abc"), (Words{"abc"}));
  EXPECT_EQ(cut("(?:a|ab)(?:c|bcd)d*", "abcd"), (Words{"abcd"}));
  EXPECT_EQ(cut("a+?b|a", "aaab"), (Words{"aaab"}));
  EXPECT_EQ(cut("a+?", "aaa"), (Words{"a", "a", "a"}));
}

TEST(Pattern, LeavesWhatItDoesNotHoldInParts) {
  EXPECT_EQ(cut("[0-9]{3}", "ab12345c"), (Words{"ab", "123", "45c"}));
  EXPECT_EQ(cut("x", "yyy"), (Words{"yyy"}));
}

TEST(Pattern, LooksOneCharacterAhead) {
  EXPECT_EQ(cut(R"(\s+(?!\S)|\s+|\S+)", "a   b "), (Words{"a", "  ", " ", "b", " "}));
  EXPECT_EQ(cut(R"(\s+$|.)", "a  \nb  "), (Words{"a", "  ", "\n", "b", "  "}));
  EXPECT_EQ(cut("a(?=b)|.", "abaa"), (Words{"a", "b", "a", "a"}));
}

TEST(Pattern, KnowsClassesOfCharacters) {
  EXPECT_EQ(cut(R"([\p{Lu}\p{M}]+|[^\p{Lu}]+)", "ÀΩaβ1"), (Words{"ÀΩ", "aβ1"}));
  EXPECT_EQ(cut(R"([\p{L}&&[^\p{Han}]]+)", "ab漢字cd"), (Words{"ab", "漢字", "cd"}));
  EXPECT_EQ(cut(R"((?i:'s|'LL)|.)", "'S'll'ſ"), (Words{"'S", "'ll", "'ſ"}));
  EXPECT_EQ(cut(R"([^(\s|[.,])]+)", "a b,c"), (Words{"a", " ", "b", ",", "c"}));
}

TEST(Pattern, CutsThePartsOfTheOneBefore) {
  EXPECT_EQ(cut({{R"(\p{N})"}, {R"( ?\p{L}+|\s+(?!\S)|\s+)"}}, "ab  12 cd"),
            (Words{"ab", "  ", "1", "2", " cd"}));
}

/// Where (?=(S{3})+(?!S)) cuts: a multiple of three characters of S is left of the run.
Words cut_in_threes(const std::string& text, const std::string& characters) {
  Words words(1);
  for (size_t at = 0; at < text.size(); ++at) {
    size_t left = 0;
    while (at + left < text.size() && characters.find(text[at + left]) != std::string::npos) ++left;
    if (left != 0 && left % 3 == 0 && !words.back().empty()) words.emplace_back();
    words.back() += text[at];
  }
  return words;
}

TEST(Pattern, CutsBeforeGroupsOfThreeCountedFromTheEnd) {
  const char* pattern = R"((?=(\d{3})+(?!\d)))";
  EXPECT_EQ(cut(pattern, "1234567"), (Words{"1", "234", "567"}));
  EXPECT_EQ(cut(pattern, "ab1234c123 12"), (Words{"ab1", "234c", "123 12"}));
  EXPECT_EQ(cut_for("superbpe", "by 1234567½1234 or 12 and x"),
            (Words{"by ", "1", "234", "567½1", "234", " or ", "12", " and x"}));
  // All texts of up to eleven characters, and long ones.
  const Cutter cutter({{pattern}});
  for (uint32_t bits = 0; bits < 1u << 11; ++bits) {
    std::string text;
    for (uint32_t i = 0; i < 1 + bits % 11; ++i) text += (bits >> i & 1) != 0 ? '7' : 'x';
    for (const size_t chunk : {1, 3, 11}) {
      ASSERT_EQ(cutter.cut(text, chunk, 4), cut_in_threes(text, "7")) << text;
    }
  }
  for (const size_t digits : {100u, 101u, 102u}) {
    const std::string text = "a" + std::string(digits, '7') + "b";
    EXPECT_EQ(cut("(?=(?:[0-9]{3})+(?![0-9]))", text), cut_in_threes(text, "7"));
  }
}

TEST(Pattern, DoesWithWhatItHoldsAsTold) {
  EXPECT_EQ(cut({{"-", true, Behaviour::WithPrevious}}, "a-b--c"), (Words{"a-", "b-", "-", "c"}));
  EXPECT_EQ(cut({{"-", true, Behaviour::WithNext}}, "a-b--c"), (Words{"a", "-b", "-", "-c"}));
  EXPECT_EQ(cut({{"-", true, Behaviour::Contiguous}}, "a--b"), (Words{"a", "--", "b"}));
  EXPECT_EQ(cut({{"-", true, Behaviour::DropHeld}}, "a--b"), (Words{"a", "b"}));
  EXPECT_EQ(cut({{R"(\w+|[^\w\s]+)", false, Behaviour::DropBetween}}, "a  b, c"),
            (Words{"a", "b", ",", "c"}));
}

TEST(Pattern, WithAnyTableGoesOn) {
  std::mt19937 random(7);
  const std::string text =
      "ab1234567 12\xff"
      "3456x";
  const schema::TokenizerT sound =
      tables_of({{R"(\d+)"}, {R"((?=(\d{3})+(?!\d)))"}, {R"(\w|\s+)"}});
  for (int trial = 0; trial < 1000; ++trial) {
    schema::TokenizerT table = sound;
    for (const auto& pattern : table.patterns) {
      pattern->behaviour = static_cast<Behaviour>(random() % 6);
      const size_t states = pattern->next.size() / (table.pattern_class_count + 1);
      for (uint16_t& entry : pattern->next) {
        if (random() % 3 != 0) continue;
        entry = static_cast<uint16_t>((random() & 0xf000) | random() % states);
      }
    }
    const Cutter cutter(table);
    cutter.cut(text, 1 + static_cast<size_t>(trial) % 3, 1 + static_cast<size_t>(trial) % 5);
    if (HasFailure()) return;
  }
}

/// The words of a way to cut that is written by hand.
Words cut_by_hand(schema::WordSplit split, uint32_t digits, const std::string& text) {
  const ClassRule rules[] = {{CodePoints::letters(), kLetter},
                             {CodePoints::numbers(), kNumber},
                             {CodePoints::white_space(), kSpace}};
  const schema::CharClassesT tables = build_char_classes(rules);
  const CharClasses classes(tables.block_of, tables.blocks);
  const WordSplitter splitter(split, digits, classes);
  Words words;
  for (size_t at = 0; at < text.size();) {
    const SplitWord word = splitter.next(std::span(text).subspan(at), true, WordRest::kNone);
    words.push_back(text.substr(at, word.bytes));
    at += word.bytes;
  }
  return words;
}

TEST(Pattern, CutsAsTheWaysThatAreWrittenByHand) {
  const char* gpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  const char* llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const char* parts[] = {"a",  "Zé",  " ", "  ", "\n", "\r\n",   "12", "12345",
                         "'s", "'LL", "'", "!?", "漢", "\u00a0", "👍",  "\xff"};
  uint32_t random = 1;
  for (int line = 0; line < 60; ++line) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      random = random * 1664525 + 1013904223;
      text += parts[(random >> 16) % std::size(parts)];
    }
    EXPECT_EQ(cut(gpt2, text), cut_by_hand(schema::WordSplit::Gpt2, 0, text));
    EXPECT_EQ(cut(llama3, text), cut_by_hand(schema::WordSplit::Llama3, 3, text));
    EXPECT_EQ(cut({{R"(\p{N})"}, {gpt2}}, text),
              cut_by_hand(schema::WordSplit::Gpt2Digits, 0, text));
    if (HasFailure()) return;
  }
}

TEST(Pattern, ThatAnAutomatonCannotFollowIsRefusedByName) {
  const std::pair<const char*, const char*> patterns[] = {
      {R"((?<=a)b)", "(?<"},
      {R"(\bword)", "\\b"},
      {R"((a)\1)", "\\1"},
      {R"(^a)", "^"},
      {R"(a(?!bc))", "further ahead"},
      {R"(a*)", "match nothing"},
      {R"(a++a)", "possessive"},
      {R"(\p{Nonsense}+)", "Nonsense"},
      {R"([a)", "bracket"},
      {R"((a)", "( without )"},
      {R"(a))", ") without ("},
      {R"(a{1,5000})", "repetitions"},
      {R"((?:(?:a{1,900}){1,900}){1,900})", "too long"},
      {R"((?:a|b)*a(?:a|b){14})", "states"},
  };
  for (const auto& [pattern, why] : patterns) {
    try {
      cut(pattern, "a");
      ADD_FAILURE() << pattern;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace oxbow::convert
