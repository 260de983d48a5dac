#pragma once

// Text cut into words, as the patterns of GPT-2, Llama 3 and SmolLM do it, which their makers wrote as
// regular expressions:
//
//   GPT-2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   Llama 3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//            |\s*[\r\n]+|\s+(?!\S)|\s+
//   SmolLM   \p{N} first, then GPT-2's pattern on each text between two digits
//
// Each malformed part of the text is a character that is neither letter nor digit nor space.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/text/tables/char_classes.h"
#include "schema/model_generated.h"

namespace oxbow {

/// What a word that was begun may go on with.
enum class WordRest : uint8_t {
  kNone,
  kLetters,
  kNumbers,
  /// Neither letters nor digits nor spaces; Llama 3: and line ends behind them.
  kOthers,
  kLineEnds,
  /// White space, but not the last of it when something follows; Llama 3: up to the last line end.
  kSpaces,
  /// White space up to the last line end.
  kSpacesToLineEnd,
};

struct SplitWord {
  /// 0 when more of the text must be seen first, or nothing is left of the word that was begun.
  size_t bytes = 0;
  /// Part of the word is no UTF-8.
  bool malformed = false;
  /// More of the text must be seen to know where the word ends. `bytes` of it are seen and belong to
  /// the word, and what follows may be `rest` of it.
  bool open = false;
  WordRest rest = WordRest::kNone;
};

class WordSplitter {
 public:
  WordSplitter(schema::WordSplit split, uint32_t max_digits, const CharClasses& classes)
      : split_(split), max_digits_(max_digits == 0 ? SIZE_MAX : max_digits), classes_(classes) {}

  /// The first word of `text`, or what is left of the one that was begun and may go on with `rest`.
  /// `last`: nothing follows `text`, else the text might go on.
  SplitWord next(std::span<const char> text, bool last, WordRest rest) const;

 private:
  struct Reader;

  SplitWord gpt2(Reader& reader) const;
  SplitWord llama3(Reader& reader) const;

  schema::WordSplit split_;
  size_t max_digits_;
  const CharClasses& classes_;
};

}  // namespace oxbow
