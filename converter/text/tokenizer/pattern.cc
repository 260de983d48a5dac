#include "converter/text/tokenizer/pattern.h"

#include <algorithm>
#include <map>
#include <set>

#include "converter/text/tokenizer/pattern_syntax.h"
#include "host/errors.h"
#include "runtime/text/pattern.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

using Kind = PatternNode::Kind;

// Patterns in use have some hundred nodes and some dozen states.
constexpr size_t kMaxNodes = 20000;
constexpr size_t kMaxStates = 4096;
constexpr size_t kMaxClasses = 255;
// Steps that are looked at in all states, for all classes. Patterns in use take some ten thousand.
constexpr size_t kMaxWork = size_t{1} << 25;

/// Code points that no pattern tells apart are one class.
class Classes {
 public:
  explicit Classes(const std::vector<PatternNode>& patterns) {
    for (const PatternNode& pattern : patterns) collect(pattern);
    std::set<uint32_t> borders = {0, 0x110000};
    for (const CodePointSet& set : sets_) {
      for (const CodePointRange& range : set) {
        borders.insert(range.first);
        borders.insert(range.last + 1);
      }
    }
    std::map<std::vector<bool>, uint8_t> numbers;
    for (auto border = borders.begin(); *border != 0x110000; ++border) {
      std::vector<bool> inside;
      for (const CodePointSet& set : sets_) inside.push_back(contains(set, *border));
      const auto [found, is_new] = numbers.emplace(inside, static_cast<uint8_t>(numbers.size()));
      if (numbers.size() > kMaxClasses) {
        throw InputError("the patterns tell apart more than " + std::to_string(kMaxClasses) +
                         " classes of characters, which is not supported");
      }
      if (is_new) first_.push_back(*border);
      std::fill(of_.begin() + *border, of_.begin() + *std::next(border), found->second);
    }
  }

  size_t count() const { return first_.size(); }
  bool holds(const CodePointSet& set, size_t number) const { return contains(set, first_[number]); }
  const std::vector<uint8_t>& of() const { return of_; }

 private:
  void collect(const PatternNode& node) {
    if (!node.set.empty()) sets_.push_back(node.set);
    for (const PatternNode& part : node.parts) collect(part);
  }

  std::vector<CodePointSet> sets_;
  std::vector<uint8_t> of_ = std::vector<uint8_t>(0x110000);
  /// A code point of each class.
  std::vector<uint32_t> first_;
};

/// The automaton that tries ways one after the other, as a list of steps.
struct Step {
  enum class Kind { kMatch, kTake, kAhead, kFork };
  Kind kind = Kind::kMatch;
  /// For each class; for kAhead also for the end of the text.
  std::vector<bool> classes;
  /// Tried in this order; only kFork has the second.
  uint32_t next = 0;
  uint32_t other = 0;
};

class Program {
 public:
  Program(const PatternNode& pattern, const Classes& classes) : classes_(classes) {
    steps.emplace_back();
    start = add(pattern, 0);
  }

  std::vector<Step> steps;
  uint32_t start = 0;

 private:
  uint32_t step(Step::Kind kind, uint32_t next, uint32_t other = 0) {
    if (steps.size() == kMaxNodes) {
      throw InputError("a pattern is too long, which is not supported");
    }
    steps.emplace_back().kind = kind;
    steps.back().next = next;
    steps.back().other = other;
    return static_cast<uint32_t>(steps.size() - 1);
  }

  /// The step a node begins with when `next` follows it.
  uint32_t add(const PatternNode& node, uint32_t next) {
    switch (node.kind) {
      case Kind::kEmpty:
        return next;
      case Kind::kSet:
      case Kind::kAhead: {
        const bool ahead = node.kind == Kind::kAhead;
        const uint32_t made = step(ahead ? Step::Kind::kAhead : Step::Kind::kTake, next);
        for (size_t i = 0; i < classes_.count(); ++i) {
          steps[made].classes.push_back(classes_.holds(node.set, i));
        }
        steps[made].classes.push_back(ahead && node.at_end);
        return made;
      }
      case Kind::kSequence:
        for (size_t i = node.parts.size(); i-- > 0;) next = add(node.parts[i], next);
        return next;
      case Kind::kChoice: {
        uint32_t first = add(node.parts.back(), next);
        for (size_t i = node.parts.size() - 1; i-- > 0;) {
          const uint32_t part = add(node.parts[i], next);
          first = step(Step::Kind::kFork, part, first);
        }
        return first;
      }
      case Kind::kRepeat:
        return add_repeat(node, next);
    }
    return next;
  }

  uint32_t fork(bool lazy, uint32_t inside, uint32_t behind) {
    return lazy ? step(Step::Kind::kFork, behind, inside) : step(Step::Kind::kFork, inside, behind);
  }

  uint32_t add_repeat(const PatternNode& node, uint32_t next) {
    const PatternNode& part = node.parts[0];
    uint32_t first = next;
    if (node.most == PatternNode::kAnyNumber) {
      const uint32_t loop = fork(node.lazy, 0, next);
      const uint32_t inside = add(part, loop);
      (node.lazy ? steps[loop].other : steps[loop].next) = inside;
      first = loop;
    } else {
      for (uint32_t i = node.least; i < node.most; ++i) {
        first = fork(node.lazy, add(part, first), next);
      }
    }
    for (uint32_t i = 0; i < node.least; ++i) first = add(part, first);
    return first;
  }

  const Classes& classes_;
};

/// The states of the automaton that tries all ways at once. A state is what is still tried, in order; the way that matched
/// ends those behind it.
class Automaton {
 public:
  Automaton(const Program& program, size_t classes)
      : program_(program), columns_(classes + 1), seen_(program.steps.size()) {
    number({});
    number({program.start});
    for (size_t state = 1; state < states_.size(); ++state) {
      next_.resize((state + 1) * columns_);
      for (size_t i = 0; i < columns_; ++i) {
        bool matched = false;
        const std::vector<uint32_t> behind = advance(states_[state], i, &matched);
        if (matched && state == 1) {
          throw InputError("a pattern may match nothing, which is not supported");
        }
        const uint16_t to = i + 1 < columns_ ? number(behind) : 0;
        next_[state * columns_ + i] = static_cast<uint16_t>(to | (matched ? kPatternEnds : 0));
      }
    }
  }

  std::vector<uint16_t> take() { return std::move(next_); }

 private:
  uint16_t number(const std::vector<uint32_t>& ways) {
    const auto [found, is_new] = numbers_.emplace(ways, static_cast<uint16_t>(states_.size()));
    if (is_new) states_.push_back(ways);
    if (states_.size() > kMaxStates) {
      throw InputError("a pattern needs more than " + std::to_string(kMaxStates) +
                       " states, which is not supported");
    }
    return found->second;
  }

  std::vector<uint32_t> advance(const std::vector<uint32_t>& ways, size_t class_number,
                                bool* matched) {
    std::fill(seen_.begin(), seen_.end(), false);
    std::vector<uint32_t> behind;
    std::set<uint32_t> there;
    // The way to be tried next is the last.
    std::vector<uint32_t> open(ways.rbegin(), ways.rend());
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (seen_[at]) continue;
      seen_[at] = true;
      if (++work_ > kMaxWork) {
        throw InputError("a pattern takes too long to be compiled, which is not supported");
      }
      const Step& step = program_.steps[at];
      switch (step.kind) {
        case Step::Kind::kMatch:
          *matched = true;
          return behind;
        case Step::Kind::kTake:
          if (step.classes[class_number] && there.insert(step.next).second) {
            behind.push_back(step.next);
          }
          break;
        case Step::Kind::kAhead:
          if (step.classes[class_number]) open.push_back(step.next);
          break;
        case Step::Kind::kFork:
          open.push_back(step.other);
          open.push_back(step.next);
          break;
      }
    }
    return behind;
  }

  const Program& program_;
  size_t columns_;
  size_t work_ = 0;
  std::vector<bool> seen_;
  std::map<std::vector<uint32_t>, uint16_t> numbers_;
  std::vector<std::vector<uint32_t>> states_;
  std::vector<uint16_t> next_;
};

/// Cuts before each group of three counted from the end of a run, "(?=(S{3})+(?!S))": the pattern S; empty: it is none of
/// these. It looks ahead without bound, and matches nothing.
std::string grouped_characters(const std::string& pattern) {
  for (const std::string begin : {"(?=(", "(?=(?:"}) {
    const std::string middle = "{3})+(?!";
    const size_t end = pattern.find(middle, begin.size());
    if (!pattern.starts_with(begin) || end == std::string::npos) continue;
    const std::string of = pattern.substr(begin.size(), end - begin.size());
    if (pattern == begin + of + middle + of + "))") return of;
  }
  return "";
}

/// Without what is around a single part.
PatternNode only_part(PatternNode node) {
  while ((node.kind == Kind::kSequence || node.kind == Kind::kChoice) && node.parts.size() == 1) {
    PatternNode part = std::move(node.parts[0]);
    node = std::move(part);
  }
  return node;
}

/// The automaton of that. A part ends before the next place where it cuts, or with the text. How long a run is shows behind
/// it only: the place where it began is marked, or, where the part began with it, that behind its first character, since no
/// part is empty.
std::vector<uint16_t> group_table(const CodePointSet& set, const Classes& classes) {
  // Between runs; runs a part began with, of 1, 2, 3 and then 4, 5, 6, 4, ... characters; runs behind other text.
  enum State : uint16_t {
    kNone,
    kStart,
    kText,
    kOwn,
    kLongOwn = kOwn + 3,
    kRun = kLongOwn + 3,
    kLongRun = kRun + 3,
    kCount = kLongRun + 2
  };
  const auto ends_behind = [](uint16_t count) {
    return static_cast<uint16_t>(kPatternEnds | (count + 1) << kPatternBehindShift);
  };
  const uint16_t to_text = kPatternEnds | kText;
  // What comes with one more character, and with another or none.
  struct Row {
    uint16_t inside, outside;
  };
  constexpr uint16_t kMarked = kPatternMark;
  const Row rows[kCount] = {
      {kNone, kNone},
      {kOwn, kText},
      {static_cast<uint16_t>(kPatternEnds | kMarked | kRun), to_text},
      {static_cast<uint16_t>(kMarked | (kOwn + 1)), to_text},
      {kOwn + 2, to_text},
      {kLongOwn, to_text},
      {kLongOwn + 1, ends_behind(0)},
      {kLongOwn + 2, ends_behind(1)},
      {kLongOwn, ends_behind(2)},
      {kRun + 1, to_text},
      {kRun + 2, to_text},
      {kLongRun, ends_behind(0)},
      {kLongRun + 1, ends_behind(1)},
      {kRun + 2, ends_behind(2)},
  };
  std::vector<uint16_t> next;
  for (const Row& row : rows) {
    for (size_t i = 0; i < classes.count(); ++i) {
      next.push_back(classes.holds(set, i) ? row.inside : row.outside);
    }
    // Behind the text there is no state.
    next.push_back(static_cast<uint16_t>(row.outside & ~kPatternState));
  }
  return next;
}

}  // namespace

std::string punctuation_pattern() {
  const auto add = [](uint32_t point, std::string& text) {
    char character[4];
    if (point < 0x80) text.push_back('\\');
    text.append(character, write_utf8(point, character));
  };
  std::string text = "[";
  for (const CodePointRange& range : CodePoints::bert_punctuation()) {
    add(range.first, text);
    if (range.last == range.first) continue;
    text.push_back('-');
    add(range.last, text);
  }
  return text + "]";
}

CompiledPatterns compile_patterns(const std::string& source,
                                  const std::vector<SplitPattern>& patterns) {
  CompiledPatterns compiled;
  try {
    std::vector<PatternNode> nodes;
    std::vector<bool> groups;
    for (const SplitPattern& pattern : patterns) {
      const std::string grouped = pattern.literal ? "" : grouped_characters(pattern.text);
      if (!grouped.empty() && pattern.behaviour != schema::SplitBehaviour::Isolated) {
        throw InputError("pattern " + printable(pattern.text) + " is supported as Isolated only");
      }
      nodes.push_back(pattern.literal ? literal_pattern(pattern.text)
                                      : parse_pattern(grouped.empty() ? pattern.text : grouped));
      groups.push_back(!grouped.empty());
      if (groups.back()) nodes.back() = only_part(std::move(nodes.back()));
      if (groups.back() && nodes.back().kind != Kind::kSet) {
        throw InputError("pattern " + printable(pattern.text) + " groups more than characters");
      }
    }
    const Classes classes(nodes);
    compiled.classes = std::make_unique<schema::CharClassesT>(pack_char_classes(classes.of()));
    compiled.class_count = static_cast<uint32_t>(classes.count());
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto out = std::make_unique<schema::WordPatternT>();
      out->next = groups[i] ? group_table(nodes[i].set, classes)
                            : Automaton(Program(nodes[i], classes), classes.count()).take();
      out->behaviour = patterns[i].behaviour;
      out->of_bytes = patterns[i].of_bytes;
      compiled.patterns.push_back(std::move(out));
    }
  } catch (const InputError& error) {
    throw InputError(source + ": " + error.what());
  }
  return compiled;
}

void write_patterns(const std::string& source, const std::vector<SplitPattern>& patterns,
                    schema::TokenizerT& tokenizer) {
  if (patterns.size() > kMaxPatterns) {
    throw InputError(source + ": text is cut in " + std::to_string(patterns.size()) +
                     " ways, expected " + std::to_string(kMaxPatterns) + " at most");
  }
  CompiledPatterns compiled = compile_patterns(source, patterns);
  tokenizer.pattern_classes = std::move(compiled.classes);
  tokenizer.pattern_class_count = compiled.class_count;
  tokenizer.patterns = std::move(compiled.patterns);
}

}  // namespace oxbow::convert
