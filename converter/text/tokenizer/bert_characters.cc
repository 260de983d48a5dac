#include "converter/text/tokenizer/bert_characters.h"

#include <algorithm>
#include <map>
#include <vector>

#include "converter/text/tokenizer/double_array.h"
#include "converter/text/tokenizer/unicode.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

bool is_mark(char32_t point) { return contains(CodePoints::bert_marks(), point); }

class Characters {
 public:
  Characters(const BertNormalizer& normalizer, bool find_words) : normalizer_(normalizer) {
    for (const CodePointRange& run : alike_code_points()) {
      const bool word = find_words && contains(CodePoints::word_characters(), run.first);
      const uint8_t bits = add(run.first) | (word ? kWordCharacter : 0);
      std::fill(bits_.begin() + run.first, bits_.begin() + run.last + 1, bits);
    }
  }

  void write(schema::TokenizerT* tokenizer) const {
    tokenizer->classes = std::make_unique<schema::CharClassesT>(pack_char_classes(bits_));
    tokenizer->split_hangul = normalizer_.strip_accents;
    tokenizer->ordered_marks = ordered_marks_;
    if (replacements_.empty()) return;
    tokenizer->char_map = std::make_unique<schema::CharMapT>();
    std::vector<uint8_t>& strings = tokenizer->char_map->strings;
    std::map<std::string, uint32_t> places;
    std::map<std::string, uint32_t> numbers;
    for (const auto& [text, replacement] : replacements_) {
      const auto [place, is_new] =
          places.emplace(replacement, static_cast<uint32_t>(strings.size()));
      if (is_new) {
        strings.insert(strings.end(), replacement.begin(), replacement.end());
        strings.push_back(0);
      }
      numbers.emplace(text, place->second);
    }
    tokenizer->char_map->trie = build_double_array(numbers);
  }

 private:
  /// The class of a character, and of those alike; notes what it becomes.
  uint8_t add(uint32_t point) {
    if (contains(CodePoints::bert_controls(), point)) return kRemoved;
    if (contains(CodePoints::white_space(), point)) return kSpace;
    uint8_t bits =
        normalizer_.split_chinese && contains(CodePoints::chinese(), point) ? kIsolated : 0;
    std::u32string parts(1, static_cast<char32_t>(point));
    if (normalizer_.strip_accents) {
      if (point >= kHangulSyllables.first && point <= kHangulSyllables.last) return bits | kChanged;
      parts = decompose(point);
      const bool ends_order = std::any_of(parts.begin(), parts.end(),
                                          [](char32_t part) { return combining_class(part) == 0; });
      std::erase_if(parts, is_mark);
      if (parts.empty()) return ends_order ? kRemoved | kChanged : kRemoved;
      if (const uint8_t order = combining_class(point); order > 0) {
        ordered_marks_.push_back(point << 8 | order);
        bits |= kChanged;
      }
    }
    if (normalizer_.lower_case) {
      std::u32string lower;
      for (const char32_t part : parts) lower += lower_case(part);
      parts = lower;
    }
    // No punctuation has anything behind it that stays.
    if (contains(CodePoints::bert_punctuation(), parts[0])) bits |= kPunctuation;
    if (parts.size() != 1 || parts[0] != point) {
      bits |= kChanged;
      replacements_.emplace(utf8(std::u32string{static_cast<char32_t>(point)}), utf8(parts));
    }
    return bits;
  }

  BertNormalizer normalizer_;
  std::vector<uint8_t> bits_ = std::vector<uint8_t>(0x110000);
  std::map<std::string, std::string> replacements_;
  std::vector<uint32_t> ordered_marks_;
};

}  // namespace

void set_bert_characters(const BertNormalizer& normalizer, bool find_words,
                         schema::TokenizerT* tokenizer) {
  Characters(normalizer, find_words).write(tokenizer);
}

}  // namespace oxbow::convert
