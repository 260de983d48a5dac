#include "runtime/text/split.h"

#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

constexpr uint8_t kKnown = kLetter | kNumber | kSpace;

bool is_line_end(uint32_t code_point) { return code_point == '\r' || code_point == '\n'; }
bool is_other(uint8_t bits) { return (bits & kKnown) == 0; }

struct Character {
  enum class Kind : uint8_t {
    kHere,
    /// The text ends.
    kEnd,
    /// The text may go on, with anything.
    kUnknown,
  };
  Kind kind;
  uint8_t bits = 0;
  uint32_t code_point = 0;
  size_t bytes = 0;

  bool here() const { return kind == Kind::kHere; }
  bool unknown() const { return kind == Kind::kUnknown; }
};

}  // namespace

/// Looks at characters, and takes them into the word.
struct WordSplitter::Reader {
  const CharClasses& classes;
  std::span<const char> text;
  bool last;
  /// A digit ends the text in front of it.
  bool digits_end;
  /// How far the word goes so far.
  size_t at = 0;
  bool malformed = false;

  Character look(size_t place) const {
    Character next = read(place);
    if (digits_end && next.here() && (next.bits & kNumber) != 0) {
      next.kind = Character::Kind::kEnd;
    }
    return next;
  }

  Character read(size_t place) const {
    if (place >= text.size()) {
      return {last ? Character::Kind::kEnd : Character::Kind::kUnknown};
    }
    if (const auto byte = static_cast<uint8_t>(text[place]); byte < 0x80) {
      return {Character::Kind::kHere, classes.of(byte), byte, 1};
    }
    const std::span<const char> rest = text.subspan(place);
    const Utf8Character next = read_utf8(rest);
    if (next.kind == Utf8Character::Kind::kCharacter) {
      return {Character::Kind::kHere, classes.of(next.code_point), next.code_point, next.bytes};
    }
    if (next.kind == Utf8Character::Kind::kIncomplete && !last) return {Character::Kind::kUnknown};
    return {Character::Kind::kHere, 0, kReplacementCharacter, malformed_bytes(rest)};
  }

  void take(const Character& character) {
    malformed |= character.code_point == kReplacementCharacter && is_other(character.bits);
    at += character.bytes;
  }

  /// Takes what `wanted` says yes to, `limit` characters at most, and tells what comes then.
  template <typename Wanted>
  Character take_while(const Wanted& wanted, size_t limit = SIZE_MAX) {
    Character next = look(at);
    for (; limit > 0 && next.here() && wanted(next); --limit) {
      take(next);
      next = look(at);
    }
    // The limit ends a word whatever comes.
    if (limit == 0) next.kind = Character::Kind::kEnd;
    return next;
  }

  SplitWord word(const Character& next, WordRest rest) const {
    return {at, malformed, next.unknown(), rest};
  }
  static SplitWord more() { return {0, false, true, WordRest::kNone}; }

  SplitWord letters() {
    return word(take_while([](const Character& c) { return (c.bits & kLetter) != 0; }),
                WordRest::kLetters);
  }
  SplitWord numbers(size_t limit) {
    return word(take_while([](const Character& c) { return (c.bits & kNumber) != 0; }, limit),
                WordRest::kNumbers);
  }
  SplitWord line_ends() {
    return word(take_while([](const Character& c) { return is_line_end(c.code_point); }),
                WordRest::kLineEnds);
  }
  SplitWord others(bool with_line_ends) {
    const Character next = take_while([](const Character& c) { return is_other(c.bits); });
    if (with_line_ends && next.here()) return line_ends();
    return word(next, WordRest::kOthers);
  }

  /// White space. `rest` tells whether the word was begun before.
  SplitWord spaces(bool to_line_end, WordRest rest) {
    size_t line_end = 0;
    size_t last_one = 0;
    Character next = look(0);
    for (; next.here() && (next.bits & kSpace) != 0; next = look(at)) {
      last_one = at;
      take(next);
      if (is_line_end(next.code_point)) line_end = at;
    }
    if (to_line_end && (line_end > 0 || rest == WordRest::kSpacesToLineEnd)) {
      at = line_end;
      return word(next, WordRest::kSpacesToLineEnd);
    }
    // The last one belongs to what follows, unless it is the only one.
    const bool only = last_one == 0 && rest == WordRest::kNone;
    if (next.unknown() || (next.here() && !only)) at = last_one;
    return word(next, WordRest::kSpaces);
  }

  /// The bytes of "'s", "'t", "'re", "'ve", "'m", "'ll" or "'d" at the beginning; 0: it is none.
  /// False: more must be seen to know.
  bool contraction(bool any_case, size_t* bytes) const {
    *bytes = 0;
    if (text[0] != '\'') return true;
    const auto fold = [&](const Character& c) {
      const uint32_t letter = c.here() ? c.code_point : 0;
      if (!any_case) return letter;
      // The long s is an s in any other case.
      return letter == 0x17f ? 's' : letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter;
    };
    const Character first = look(1);
    if (first.unknown()) return false;
    switch (const uint32_t letter = fold(first)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        *bytes = 1 + first.bytes;
        return true;
      case 'r':
      case 'v':
      case 'l': {
        const Character second = look(1 + first.bytes);
        if (second.unknown()) return false;
        if (fold(second) == (letter == 'l' ? 'l' : 'e')) *bytes = 1 + first.bytes + second.bytes;
        return true;
      }
      default:
        return true;
    }
  }
};

SplitWord WordSplitter::gpt2(Reader& reader) const {
  Character first = reader.look(0);
  if (first.code_point == ' ') {
    const Character second = reader.look(1);
    if (second.unknown()) return Reader::more();
    if (second.here() && (second.bits & kSpace) == 0) {
      reader.take(first);
      first = second;
    }
  }
  if ((first.bits & kLetter) != 0) return reader.letters();
  if ((first.bits & kNumber) != 0) return reader.numbers(SIZE_MAX);
  if (is_other(first.bits)) return reader.others(false);
  return reader.spaces(false, WordRest::kNone);
}

SplitWord WordSplitter::llama3(Reader& reader) const {
  const Character first = reader.look(0);
  if ((first.bits & kLetter) != 0) return reader.letters();
  if ((first.bits & kNumber) != 0) return reader.numbers(max_digits_);
  if (!is_line_end(first.code_point)) {
    const Character second = reader.look(first.bytes);
    if (second.unknown()) return Reader::more();
    if (second.here() && (second.bits & kLetter) != 0) {
      reader.take(first);
      return reader.letters();
    }
    if (is_other(first.bits)) return reader.others(true);
    if (first.code_point == ' ' && second.here() && is_other(second.bits)) {
      reader.take(first);
      return reader.others(true);
    }
  }
  if ((first.bits & kSpace) == 0) return reader.others(true);
  return reader.spaces(true, WordRest::kNone);
}

SplitWord WordSplitter::next(std::span<const char> text, bool last, WordRest rest) const {
  if (text.empty()) return {0, false, !last, WordRest::kNone};
  const bool is_llama3 = split_ == schema::WordSplit::Llama3;
  Reader reader{classes_, text, last, split_ == schema::WordSplit::Gpt2Digits};
  switch (rest) {
    case WordRest::kNone:
      break;
    case WordRest::kLetters:
      return reader.letters();
    case WordRest::kNumbers:
      return reader.numbers(SIZE_MAX);
    case WordRest::kOthers:
      return reader.others(is_llama3);
    case WordRest::kLineEnds:
      return reader.line_ends();
    case WordRest::kSpaces:
    case WordRest::kSpacesToLineEnd:
      return reader.spaces(is_llama3, rest);
  }
  const Character first = reader.read(0);
  if (first.unknown()) return Reader::more();
  if (reader.digits_end && (first.bits & kNumber) != 0) {
    return {first.bytes, false, false, WordRest::kNone};
  }
  size_t contraction = 0;
  if (!reader.contraction(is_llama3, &contraction)) return Reader::more();
  if (contraction > 0) return {contraction, false, false, WordRest::kNone};
  return is_llama3 ? llama3(reader) : gpt2(reader);
}

}  // namespace oxbow
