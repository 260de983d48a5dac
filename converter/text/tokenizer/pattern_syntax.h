#pragma once

// Regular expressions as files of `tokenizers` have them (Oniguruma's syntax), read as a tree. What an automaton without
// memory cannot do is refused: looking back, looking more than one character ahead, back references.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "converter/text/tokenizer/unicode.h"

namespace oxbow::convert {

/// Sorted ranges that do not touch.
using CodePointSet = std::vector<CodePointRange>;

CodePointSet unite(CodePointSet a, const CodePointSet& b);
CodePointSet complement(const CodePointSet& set);

struct PatternNode {
  enum class Kind {
    /// The empty text.
    kEmpty,
    /// A character of `set`.
    kSet,
    /// Whether a character of `set` comes next, or with `at_end` nothing.
    kAhead,
    /// All parts, one after the other.
    kSequence,
    /// One of the parts, the first that leads to a match.
    kChoice,
    /// The only part, `least` to `most` times.
    kRepeat,
  };
  static constexpr uint32_t kAnyNumber = 0xffffffff;

  Kind kind = Kind::kEmpty;
  CodePointSet set;
  bool at_end = false;
  std::vector<PatternNode> parts;
  uint32_t least = 0;
  uint32_t most = 0;
  /// As few times as possible first.
  bool lazy = false;
};

/// Throws InputError, which names the pattern and what of it is not supported.
PatternNode parse_pattern(const std::string& pattern);

/// The text itself, whatever its characters mean in a pattern.
PatternNode literal_pattern(const std::string& text);

}  // namespace oxbow::convert
