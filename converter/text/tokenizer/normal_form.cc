#include "converter/text/tokenizer/normal_form.h"

#include <algorithm>
#include <map>

#include "converter/text/tokenizer/double_array.h"
#include "converter/text/tokenizer/unicode.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

/// Jamo that join with what is before them.
constexpr CodePointRange kVowelsAndTrails[] = {{0x1161, 0x1175}, {0x11a8, 0x11c2}};

using Texts = std::map<std::string, std::string>;

class Tables {
 public:
  explicit Tables(const NormalForm& form) : form_(form) {
    for (const CodePointRange& run : alike_code_points()) {
      // Where nothing is to be done for the first, there is nothing for the others.
      for (uint32_t point = run.first; point <= run.last && add(point); ++point) {
      }
    }
    if (!form.compose) return;
    for (const Composition& pair : compositions()) {
      composed_[utf8(std::u32string{pair.first, pair.second})] = utf8(pair.joined);
      changed_.push_back({pair.second, pair.second});
    }
    changed_.insert(changed_.end(), std::begin(kVowelsAndTrails), std::end(kVowelsAndTrails));
  }

  void write(schema::NormalizationT& out) const {
    out.prefix = form_.prefix;
    out.prefix_unless_space = form_.prefix_unless_space;
    if (!decomposed_.empty()) out.decompose = make_char_map(decomposed_);
    if (!composed_.empty()) out.compose = make_char_map(composed_);
    if (!replaced_.empty()) out.replace = make_char_map(replaced_);
    out.marks = marks_;
    // What is taken apart and put together again needs neither.
    out.split_hangul = form_.decompose != NormalForm::Decompose::kNone && !form_.compose;
    out.join_hangul = form_.compose;
  }
  const std::vector<CodePointRange>& changed() const { return changed_; }

 private:
  /// Whether it is changed.
  bool add(uint32_t point) {
    const std::u32string own(1, static_cast<char32_t>(point));
    bool changes = false;
    if (form_.decompose != NormalForm::Decompose::kNone) {
      const std::u32string parts = form_.decompose == NormalForm::Decompose::kCanonical
                                       ? decompose(point)
                                       : decompose_compatible(point);
      const uint8_t order = combining_class(point);
      if (parts != own) decomposed_[utf8(own)] = utf8(parts);
      if (order > 0) marks_.push_back(point << 8 | order);
      const bool syllable =
          point >= kHangulSyllables.first && point <= kHangulSyllables.last && !form_.compose;
      changes = parts != own || order > 0 || syllable;
      if (changes) changed_.push_back({point, point});
    }
    std::u32string last = own;
    if (form_.strip_accents && contains(CodePoints::bert_marks(), point)) last.clear();
    if (form_.strip_marks && contains(CodePoints::marks(), point)) last.clear();
    if (form_.lower_case && !last.empty()) last = lower_case(point);
    if (last != own) replaced_[utf8(own)] = utf8(last);
    return changes || last != own;
  }

  NormalForm form_;
  Texts decomposed_;
  Texts composed_;
  Texts replaced_;
  std::vector<uint32_t> marks_;
  std::vector<CodePointRange> changed_;
};

}  // namespace

std::unique_ptr<schema::CharMapT> make_char_map(const std::map<std::string, std::string>& texts) {
  auto map = std::make_unique<schema::CharMapT>();
  std::map<std::string, uint32_t> places;
  std::map<std::string, uint32_t> numbers;
  for (const auto& [text, becomes] : texts) {
    const auto [place, is_new] =
        places.emplace(becomes, static_cast<uint32_t>(map->strings.size()));
    if (is_new) {
      map->strings.insert(map->strings.end(), becomes.begin(), becomes.end());
      map->strings.push_back(0);
    }
    numbers.emplace(text, place->second);
  }
  map->trie = build_double_array(numbers);
  return map;
}

FormTables make_form(const NormalForm& form, std::vector<ClassRule> rules) {
  FormTables out;
  std::vector<CodePointRange> changed;
  if (!form.empty()) {
    const Tables tables(form);
    out.form = std::make_unique<schema::NormalizationT>();
    tables.write(*out.form);
    changed = tables.changed();
    rules.push_back({changed, kChanged});
  }
  out.classes = std::make_unique<schema::CharClassesT>(build_char_classes(rules));
  return out;
}

void write_normal_form(const NormalForm& form, std::vector<ClassRule> rules,
                       schema::TokenizerT& tokenizer) {
  FormTables tables = make_form(form, std::move(rules));
  tokenizer.normalization = std::move(tables.form);
  tokenizer.classes = std::move(tables.classes);
}

}  // namespace oxbow::convert
