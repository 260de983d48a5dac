#pragma once

// Text cut by regular expressions, which the converter has made automata of. A pattern takes what a backtracking
// matcher would take, alternatives from the left to the right, but goes over the text once and never back further than
// the last place where a match may end. It sees one character beyond a place, or the end, before it calls it the end of a
// match: so a pattern can ask what follows.
//
//   text:      |  The |  cost: |  1 2 0 ...      cut by \p{N}, then each part by GPT-2's pattern, and so on
//   cutter 0   |--------------------|--|--
//   cutter 1   |------|--------|----|
//
// A part may be longer than what is seen of the text. What is known of it can be taken, and the rest goes on from there.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/tables/char_classes.h"
#include "schema/model_generated.h"

namespace oxbow {

inline constexpr size_t kMaxPatterns = 8;

// The parts of an entry of a pattern's table (WordPattern.next in schema/model.fbs). Where a match ends may be known only
// some way behind: a place is marked on the way, and the match ends there, or one or two characters later.

inline constexpr uint16_t kPatternState = 0x0fff;
/// The place before this character is the marked one from now on.
inline constexpr uint16_t kPatternMark = 0x1000;
/// Of 0x8000: 0: the match ends before this character; n: n - 1 characters behind the marked place.
inline constexpr uint32_t kPatternBehindShift = 13;
inline constexpr uint16_t kPatternBehind = 3;
inline constexpr uint16_t kPatternEnds = 0x8000;

/// Patterns that cut one after the other, verified.
struct PatternSet {
  const schema::WordPattern* patterns[kMaxPatterns] = {};
  size_t count = 0;
  /// Of all of them: the class of each character, and how many classes there are, the end of the text included.
  CharClasses classes;
  size_t columns = 0;

  /// Verifies a pattern for the classes, which were set, and adds it.
  Status add(const schema::WordPattern& pattern, Error* error);
  /// `count`: of the classes.
  Status set_classes(const CharClasses& of_characters, size_t class_count, Error* error);
};

/// Where one pattern is in the text, counted from the beginning of what is left of it.
struct PatternPart {
  enum class Mode : uint8_t { kFresh, kBetween, kHeld };
  /// Bytes known to belong to the part that begins the text.
  uint32_t known = 0;
  /// Held: the state of the automaton there.
  uint16_t state = 0;
  Mode mode = Mode::kFresh;
  /// The part ends there.
  bool closed = false;
};

/// Between two calls.
struct PatternState {
  PatternPart parts[kMaxPatterns];
  /// Something malformed was seen.
  bool malformed = false;
};

struct PatternWord {
  /// Bytes that are known to belong to the word; 0: more must be seen, or nothing is left of the word.
  size_t bytes = 0;
  /// The word may go on.
  bool open = false;
  bool malformed = false;
  /// It gives no tokens.
  bool dropped = false;
};

/// Cuts a text by all patterns of a set.
class PatternCutter {
 public:
  PatternCutter(const PatternSet& set, PatternState& state, std::span<const char> text, bool last)
      : set_(set), state_(state), text_(text), last_(last) {}

  /// What the text begins with. `enough`: how many bytes of a word need not be looked beyond.
  PatternWord next(size_t enough);
  /// The first bytes of the word were taken.
  void take(size_t bytes);
  /// The word that was begun is over.
  void end_word() { settle(); }

 private:
  struct Walk;

  bool extend(size_t index);
  bool begin(size_t index);
  bool between(size_t index);
  bool held(size_t index);
  bool close(size_t index);
  bool skip(size_t index);
  void settle();
  schema::SplitBehaviour behaviour(size_t index) const;
  Walk walk(size_t index, size_t from, uint16_t begun);
  bool see(size_t index, size_t place, bool* end);
  size_t character(size_t index, size_t place, uint8_t* class_number, bool* cut_off);

  const PatternSet& set_;
  PatternState& state_;
  std::span<const char> text_;
  bool last_;
};

}  // namespace oxbow
