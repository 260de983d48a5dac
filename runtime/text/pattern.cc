#include "runtime/text/pattern.h"

#include <algorithm>

#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

using Behaviour = schema::SplitBehaviour;
using Mode = PatternPart::Mode;

constexpr uint16_t kStart = 1;

/// The character that stands for a byte in GPT-2's vocabularies: itself, or one from U+0100 on for those that are not
/// printable.
uint32_t printable(uint8_t byte) {
  if (byte <= 0x20) return 0x100u + byte;
  if (byte < 0x7f) return byte;
  if (byte <= 0xa0) return 0x121u + (byte - 0x7fu);
  return byte == 0xad ? 0x143 : byte;
}

}  // namespace

/// How far an automaton came.
struct PatternCutter::Walk {
  /// The furthest place where a match ends, and the state there; `found` tells whether there is one.
  size_t end = 0;
  uint16_t state = 0;
  bool found = false;
  /// The text ended before it was known whether the match goes on.
  bool open = false;
};

/// Bytes of the character at a place that is not the end of the text, and its class.
size_t PatternCutter::character(size_t index, size_t place, uint8_t* class_number, bool* cut_off) {
  const auto byte = static_cast<uint8_t>(text_[place]);
  if (set_.patterns[index]->of_bytes()) {
    *class_number = set_.classes.of(printable(byte));
    return 1;
  }
  if (byte < 0x80) {
    *class_number = set_.classes.of(byte);
    return 1;
  }
  const std::span<const char> rest = text_.subspan(place);
  const Utf8Character next = read_utf8(rest);
  if (next.kind == Utf8Character::Kind::kCharacter) {
    *class_number = set_.classes.of(next.code_point);
    return next.bytes;
  }
  if (next.kind == Utf8Character::Kind::kIncomplete && !last_) {
    *cut_off = true;
    return 0;
  }
  state_.malformed = true;
  *class_number = set_.classes.of(kReplacementCharacter);
  return malformed_bytes(rest);
}

/// Whether it is known what a pattern sees at a place: a character, or the end of what it may look at.
bool PatternCutter::see(size_t index, size_t place, bool* end) {
  *end = false;
  if (index > 0) {
    const PatternPart& outer = state_.parts[index - 1];
    while (place >= outer.known && !outer.closed) {
      if (!extend(index - 1)) return false;
    }
    *end = place >= outer.known;
    return true;
  }
  if (place < text_.size()) return true;
  *end = last_;
  return last_;
}

PatternCutter::Walk PatternCutter::walk(size_t index, size_t from, uint16_t begun) {
  uint16_t state = begun;
  const uint16_t* const next = set_.patterns[index]->next()->data();
  const size_t columns = set_.columns;
  Walk walk;
  walk.end = from;
  size_t place = from;
  // The marked place and what follows it, as far as it was seen.
  size_t marks[kPatternBehind] = {};
  size_t marked = 0;
  // Up to here each place is seen without asking.
  size_t sure = 0;
  while (state != 0) {
    bool end = false;
    if (place >= sure) {
      if (!see(index, place, &end)) {
        walk.open = true;
        return walk;
      }
      sure = index == 0 ? text_.size() : state_.parts[index - 1].known;
    }
    auto class_number = static_cast<uint8_t>(columns - 1);
    size_t bytes = 0;
    if (!end) {
      bool cut_off = false;
      bytes = character(index, place, &class_number, &cut_off);
      if (cut_off) {
        walk.open = true;
        return walk;
      }
    }
    const uint16_t entry = next[state * columns + class_number];
    const size_t behind = entry >> kPatternBehindShift & kPatternBehind;
    if ((entry & kPatternMark) != 0) marked = 0;
    if (marked != 0 || (entry & kPatternMark) != 0) {
      if (marked < kPatternBehind) marks[marked++] = place;
    }
    if ((entry & kPatternEnds) != 0 && place > from) {
      const size_t ends = behind == 0 || behind > marked ? place : marks[behind - 1];
      // A match that is over may turn out to have ended where this went on; otherwise each step leads further.
      const bool is_over = begun != kStart && (entry & kPatternState) == 0;
      if (ends > from || is_over) {
        walk.end = ends;
        walk.state = state;
        walk.found = true;
      }
    }
    if (end) return walk;
    state = entry & kPatternState;
    place += bytes;
  }
  return walk;
}

/// The first bytes of a part. False: more must be seen.
bool PatternCutter::begin(size_t index) {
  PatternPart& part = state_.parts[index];
  bool end = false;
  if (!see(index, 0, &end) || end) return false;
  const Walk found = walk(index, 0, kStart);
  if (found.found) {
    part.mode = Mode::kHeld;
    part.known = static_cast<uint32_t>(found.end);
    part.state = found.state;
    return found.open || close(index);
  }
  if (found.open) return false;
  part.mode = Mode::kBetween;
  return skip(index);
}

/// One more character between what is held.
bool PatternCutter::skip(size_t index) {
  PatternPart& part = state_.parts[index];
  uint8_t class_number = 0;
  bool cut_off = false;
  part.known += static_cast<uint32_t>(character(index, part.known, &class_number, &cut_off));
  return !cut_off;
}

/// Goes on where nothing was held so far.
bool PatternCutter::between(size_t index) {
  PatternPart& part = state_.parts[index];
  bool end = false;
  if (!see(index, part.known, &end)) return false;
  part.closed = end;
  if (end) return true;
  const Walk found = walk(index, part.known, kStart);
  if (!found.found) return !found.open && skip(index);
  if (behaviour(index) == Behaviour::WithPrevious) {
    part.mode = Mode::kHeld;
    part.state = kStart;
  } else {
    part.closed = true;
  }
  return true;
}

/// Goes on inside of a match.
bool PatternCutter::held(size_t index) {
  PatternPart& part = state_.parts[index];
  const Walk found = walk(index, part.known, part.state);
  if (found.found) {
    part.known = static_cast<uint32_t>(found.end);
    part.state = found.state;
    return found.open || close(index);
  }
  return !found.open && close(index);
}

/// A match ended, and with it the part, unless what follows belongs to it.
bool PatternCutter::close(size_t index) {
  PatternPart& part = state_.parts[index];
  // From here on no match goes on, whenever it is looked at again.
  part.state = 0;
  const bool takes_held = behaviour(index) == Behaviour::Contiguous;
  if (takes_held || behaviour(index) == Behaviour::WithNext) {
    bool end = false;
    if (!see(index, part.known, &end)) return false;
    if (!end) {
      const Walk found = walk(index, part.known, kStart);
      if (!found.found && found.open) return false;
      if (found.found == takes_held) {
        part.mode = takes_held ? Mode::kHeld : Mode::kBetween;
        part.state = kStart;
        return true;
      }
    }
  }
  part.closed = true;
  return true;
}

Behaviour PatternCutter::behaviour(size_t index) const { return set_.patterns[index]->behaviour(); }

/// Finds out more about a part that is not closed. False: more of the text must be seen.
bool PatternCutter::extend(size_t index) {
  switch (state_.parts[index].mode) {
    case Mode::kFresh:
      return begin(index);
    case Mode::kBetween:
      return between(index);
    case Mode::kHeld:
      return held(index);
  }
  return false;
}

PatternWord PatternCutter::next(size_t enough) {
  const PatternPart& part = state_.parts[set_.count - 1];
  while (!part.closed && part.known <= enough) {
    if (!extend(set_.count - 1)) break;
  }
  PatternWord word{part.known, !part.closed, false, false};
  for (size_t i = 0; i < set_.count; ++i) {
    const Mode mode = state_.parts[i].mode;
    word.dropped |= (behaviour(i) == Behaviour::DropHeld && mode == Mode::kHeld) ||
                    (behaviour(i) == Behaviour::DropBetween && mode == Mode::kBetween);
  }
  std::span<const char> rest = text_.first(std::min<size_t>(part.known, text_.size()));
  while (state_.malformed && !word.malformed && !rest.empty()) {
    const Utf8Character next = read_utf8(rest);
    word.malformed = next.kind != Utf8Character::Kind::kCharacter;
    rest = rest.subspan(std::min(rest.size(), std::max<size_t>(next.bytes, 1)));
  }
  return word;
}

void PatternCutter::take(size_t bytes) {
  text_ = text_.subspan(bytes);
  for (PatternPart& part : state_.parts) {
    part.known -= static_cast<uint32_t>(std::min<size_t>(part.known, bytes));
  }
  settle();
}

/// Where a part ended, what follows begins another, and so it does inside of that.
void PatternCutter::settle() {
  bool over = false;
  for (PatternPart& part : std::span(state_.parts).first(set_.count)) {
    over |= part.closed && part.known == 0;
    if (over) part = {};
  }
}

Status PatternSet::set_classes(const CharClasses& of_characters, size_t class_count, Error* error) {
  classes = of_characters;
  columns = class_count + 1;
  if (classes.empty() || columns > 256 || classes.largest() >= class_count) {
    return fail(error, Status::kFileCorrupt,
                "tokenizer: the classes of the patterns are not there or more than they may be");
  }
  return Status::kOk;
}

Status PatternSet::add(const schema::WordPattern& pattern, Error* error) {
  if (count == kMaxPatterns) {
    return fail(error, Status::kFileCorrupt, "tokenizer: more than %zu patterns", kMaxPatterns);
  }
  const auto* next = pattern.next();
  const size_t states = next == nullptr ? 0 : next->size() / columns;
  if (states < 2 || states > kPatternState + 1u || next->size() != states * columns ||
      std::any_of(next->begin(), next->end(),
                  [&](uint16_t entry) { return (entry & kPatternState) >= states; })) {
    return fail(error, Status::kFileCorrupt, "tokenizer: a pattern leads out of itself");
  }
  if (pattern.behaviour() > Behaviour::MAX) {
    return fail(error, Status::kFileUnsupported,
                "tokenizer: a pattern of a behaviour this library does not know: use a newer one");
  }
  patterns[count++] = &pattern;
  return Status::kOk;
}

}  // namespace oxbow
