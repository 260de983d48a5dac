#pragma once

// What tokenizers ask about characters, as the libraries that trained them answer. The runtime has
// no Unicode data: the converter writes what a tokenizer needs into the file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// Both ends belong to it.
struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

/// Sorted ranges. `tokenizers` is Hugging Face's library, in version 0.23.
struct CodePoints {
  /// \p{L}, \p{N} and \s of regular expressions in `tokenizers`; White_Space is all libraries' idea
  /// of white space.
  static std::span<const CodePointRange> letters();
  static std::span<const CodePointRange> numbers();
  static std::span<const CodePointRange> white_space();
  /// \w, of which none may be beside an added token that must stand alone.
  static std::span<const CodePointRange> word_characters();
  /// Of BERT in `tokenizers`: words of their own; accents, which may be stripped; what is left out
  /// of every text.
  static std::span<const CodePointRange> bert_punctuation();
  static std::span<const CodePointRange> bert_marks();
  static std::span<const CodePointRange> bert_controls();
  /// What its normalizer StripAccents leaves out.
  static std::span<const CodePointRange> marks();
  /// Han characters, each of which is a word of its own to BERT.
  static std::span<const CodePointRange> chinese();
};

inline constexpr CodePointRange kHangulSyllables = {0xac00, 0xd7a3};

bool contains(std::span<const CodePointRange> ranges, uint32_t code_point);

std::string utf8(std::u32string_view text);
inline std::string utf8(char32_t code_point) { return utf8(std::u32string_view(&code_point, 1)); }

/// All code points in runs, without surrogates: what is here tells the same of all characters of a run but for itself, and
/// where it makes others of them, all of them are. Who asks about all of Unicode asks once a run.
std::span<const CodePointRange> alike_code_points();

/// The character in lower case, without regard to its neighbours; itself when it has none.
std::u32string lower_case(uint32_t code_point);

/// The full canonical decomposition; itself when there is none. A Hangul syllable is not taken apart.
std::u32string decompose(uint32_t code_point);

/// The canonical combining class of a character that does not decompose.
uint8_t combining_class(uint32_t code_point);

/// \p{name} in patterns of `tokenizers`: a general category, its first letter, or one of a few scripts; missing: it is
/// none of them.
std::optional<std::vector<CodePointRange>> named_code_points(std::string_view name);

/// The full decomposition for compatibility, or the canonical one. A Hangul syllable is not taken apart.
std::u32string decompose_compatible(uint32_t code_point);

/// Two characters and the one they compose to, without Hangul.
struct Composition {
  uint32_t first;
  uint32_t second;
  uint32_t joined;
};
std::span<const Composition> compositions();

/// Code points and the bits (see runtime/text/tables/char_classes.h) they get.
struct ClassRule {
  std::span<const CodePointRange> ranges;
  uint8_t bits;
};

/// A table in which each code point has the bits of all rules that name it. Blocks are stored once.
schema::CharClassesT build_char_classes(std::span<const ClassRule> rules);

/// The same for bits that are there for each of the 0x110000 code points.
schema::CharClassesT pack_char_classes(std::span<const uint8_t> bits);

}  // namespace oxbow::convert
