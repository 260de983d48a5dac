#include "converter/text/tokenizer/unicode.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/text/tables/char_classes.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

/// Every `step`th of these code points has a lower case that is `added` higher.
struct LowerRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t added;
};

/// Unused places of `parts` are zero.
struct Decomposition {
  uint32_t code_point;
  char32_t parts[4];
};

struct CombiningRange {
  uint32_t first;
  uint32_t last;
  uint8_t combining_class;
};

struct NamedRange {
  uint32_t first;
  uint32_t last;
  std::string_view name;
};

/// A place in kCompatibleParts.
struct CompatibleEntry {
  uint32_t code_point;
  uint32_t begin;
  uint32_t size;
};

#include "converter/text/tokenizer/unicode_data.inc"
#include "converter/text/tokenizer/unicode_patterns.inc"

// U+2B820 to U+2B91F are missing in the original too.
constexpr CodePointRange kChineseRanges[] = {
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
    {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
constexpr uint32_t kCodePointCount = 0x110000;
constexpr CodePointRange kSurrogates = {0xd800, 0xdfff};

/// The one of these sorted ranges that holds the code point, or null.
template <typename Range>
const Range* find(std::span<const Range> ranges, uint32_t code_point) {
  const auto found =
      std::lower_bound(ranges.begin(), ranges.end(), code_point,
                       [](const Range& range, uint32_t point) { return range.last < point; });
  return found != ranges.end() && found->first <= code_point ? &*found : nullptr;
}

}  // namespace

std::span<const CodePointRange> CodePoints::letters() { return kLetterRanges; }
std::span<const CodePointRange> CodePoints::numbers() { return kNumberRanges; }
std::span<const CodePointRange> CodePoints::white_space() { return kWhiteSpaceRanges; }
std::span<const CodePointRange> CodePoints::word_characters() { return kWordRanges; }
std::span<const CodePointRange> CodePoints::bert_punctuation() { return kBertPunctuationRanges; }
std::span<const CodePointRange> CodePoints::bert_marks() { return kBertMarkRanges; }
std::span<const CodePointRange> CodePoints::marks() { return kMarkRanges; }
std::span<const CodePointRange> CodePoints::bert_controls() { return kBertControlRanges; }

std::span<const CodePointRange> CodePoints::chinese() { return kChineseRanges; }

std::span<const CodePointRange> alike_code_points() {
  static const std::vector<CodePointRange> runs = [] {
    std::vector<uint32_t> begins = {0, 0x130, 0x131};
    const auto add = [&](uint32_t first, uint32_t last) {
      begins.push_back(first);
      begins.push_back(last + 1);
    };
    for (const auto ranges :
         {CodePoints::white_space(), CodePoints::word_characters(), CodePoints::bert_punctuation(),
          CodePoints::bert_marks(), CodePoints::bert_controls(), CodePoints::marks(),
          CodePoints::chinese(), std::span<const CodePointRange>(&kHangulSyllables, 1),
          std::span<const CodePointRange>(&kSurrogates, 1)}) {
      for (const CodePointRange& range : ranges) add(range.first, range.last);
    }
    // Each of these becomes another character, or has a place of its own.
    const auto add_each = [&](uint32_t first, uint32_t last) {
      for (uint32_t point = first; point <= last; ++point) add(point, point);
    };
    for (const LowerRun& run : kLowerRuns) add_each(run.first, run.last);
    for (const CombiningRange& range : kCombiningRanges) add_each(range.first, range.last);
    for (const Decomposition& entry : kDecompositions) add(entry.code_point, entry.code_point);
    for (const CompatibleEntry& entry : kCompatible) add(entry.code_point, entry.code_point);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    std::vector<CodePointRange> out;
    for (size_t i = 0; i < begins.size() && begins[i] < kCodePointCount; ++i) {
      if (begins[i] == kSurrogates.first) continue;
      const uint32_t end = i + 1 < begins.size() ? begins[i + 1] : kCodePointCount;
      out.push_back({begins[i], std::min(end, kCodePointCount) - 1});
    }
    return out;
  }();
  return runs;
}

std::string utf8(std::u32string_view text) {
  std::string bytes;
  for (const char32_t point : text) {
    char character[4];
    bytes.append(character, write_utf8(point, character));
  }
  return bytes;
}

bool contains(std::span<const CodePointRange> ranges, uint32_t code_point) {
  return find(ranges, code_point) != nullptr;
}

std::u32string lower_case(uint32_t code_point) {
  // The only one whose lower case is more than one character.
  if (code_point == 0x130) return U"i\u0307";
  const LowerRun* run = find(std::span<const LowerRun>(kLowerRuns), code_point);
  const bool changes = run != nullptr && (code_point - run->first) % run->step == 0;
  return {
      static_cast<char32_t>(changes ? code_point + static_cast<uint32_t>(run->added) : code_point)};
}

std::u32string decompose(uint32_t code_point) {
  const auto* found = std::lower_bound(
      std::begin(kDecompositions), std::end(kDecompositions), code_point,
      [](const Decomposition& entry, uint32_t point) { return entry.code_point < point; });
  if (found == std::end(kDecompositions) || found->code_point != code_point) {
    return {static_cast<char32_t>(code_point)};
  }
  const auto* end = std::find(std::begin(found->parts), std::end(found->parts), U'\0');
  return {std::begin(found->parts), end};
}

std::optional<std::vector<CodePointRange>> named_code_points(std::string_view name) {
  std::vector<CodePointRange> found;
  const auto add = [&](std::span<const NamedRange> ranges) {
    for (const NamedRange& range : ranges) {
      const bool wanted = name.size() == 1 ? range.name[0] == name[0] : range.name == name;
      if (wanted) found.push_back({range.first, range.last});
    }
  };
  // Scripts have long names.
  name.size() <= 2 ? add(kCategoryRanges) : add(kScriptRanges);
  if (found.empty()) return std::nullopt;
  return found;
}

std::u32string decompose_compatible(uint32_t code_point) {
  const auto* found = std::lower_bound(
      std::begin(kCompatible), std::end(kCompatible), code_point,
      [](const CompatibleEntry& entry, uint32_t point) { return entry.code_point < point; });
  if (found == std::end(kCompatible) || found->code_point != code_point) {
    return decompose(code_point);
  }
  return {kCompatibleParts + found->begin, found->size};
}

std::span<const Composition> compositions() { return kCompositions; }

uint8_t combining_class(uint32_t code_point) {
  const CombiningRange* range = find(std::span<const CombiningRange>(kCombiningRanges), code_point);
  return range == nullptr ? 0 : range->combining_class;
}

schema::CharClassesT build_char_classes(std::span<const ClassRule> rules) {
  std::vector<uint8_t> bits(size_t{CharClasses::kBlockCount} * CharClasses::kBlock);
  for (const ClassRule& rule : rules) {
    for (const CodePointRange& range : rule.ranges) {
      for (size_t point = range.first; point <= range.last; ++point) bits[point] |= rule.bits;
    }
  }
  return pack_char_classes(bits);
}

schema::CharClassesT pack_char_classes(std::span<const uint8_t> bits) {
  schema::CharClassesT classes;
  std::map<std::string, uint16_t> numbers;
  for (size_t block = 0; block < CharClasses::kBlockCount; ++block) {
    const auto part = bits.subspan(block * CharClasses::kBlock, CharClasses::kBlock);
    const auto [number, is_new] =
        numbers.try_emplace({part.begin(), part.end()}, static_cast<uint16_t>(numbers.size()));
    if (is_new) classes.blocks.insert(classes.blocks.end(), part.begin(), part.end());
    classes.block_of.push_back(number->second);
  }
  return classes;
}

}  // namespace oxbow::convert
