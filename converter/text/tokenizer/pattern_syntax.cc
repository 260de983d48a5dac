#include "converter/text/tokenizer/pattern_syntax.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "host/errors.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

using Kind = PatternNode::Kind;

constexpr uint32_t kLastPoint = 0x10ffff;
constexpr int kMaxDepth = 64;
constexpr uint32_t kMaxRepeat = 1000;
// Characters of a pattern. Those in use have some hundred, that of all punctuation some thousand; two of them may mean a
// set of a thousand ranges.
constexpr size_t kMaxPattern = 4096;

CodePointSet tidy(CodePointSet set) {
  std::sort(set.begin(), set.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  CodePointSet out;
  for (const CodePointRange& range : set) {
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

CodePointSet copy(std::span<const CodePointRange> ranges) {
  return tidy({ranges.begin(), ranges.end()});
}

CodePointSet intersect(const CodePointSet& a, const CodePointSet& b) {
  return complement(unite(complement(a), complement(b)));
}

/// With all characters that differ from one of the set by their case only.
CodePointSet any_case(const CodePointSet& set) {
  // Besides what lower case tells: the long s.
  constexpr uint32_t kLongS = 0x17f;
  const auto folded = [&](uint32_t point) {
    const std::u32string lower = lower_case(point == kLongS ? 's' : point);
    return lower.size() == 1 ? static_cast<uint32_t>(lower[0]) : point;
  };
  static const std::vector<std::pair<uint32_t, uint32_t>> changing = [&] {
    std::vector<std::pair<uint32_t, uint32_t>> out;
    for (uint32_t point = 0; point <= 0x1ffff; ++point) {
      if (folded(point) != point) out.emplace_back(point, folded(point));
    }
    return out;
  }();
  CodePointSet wanted;
  for (const auto& [point, lower] : changing) {
    if (contains(set, point)) wanted.push_back({lower, lower});
  }
  const CodePointSet low = unite(set, tidy(wanted));
  CodePointSet more;
  for (const auto& [point, lower] : changing) {
    if (contains(low, lower)) more.push_back({point, point});
  }
  return unite(low, tidy(more));
}

/// The first characters a node may begin with; *empty: it may also be nothing.
CodePointSet first_of(const PatternNode& node, bool* empty) {
  *empty = false;
  CodePointSet out;
  switch (node.kind) {
    case Kind::kEmpty:
      *empty = true;
      return {};
    case Kind::kSet:
      return node.set;
    case Kind::kAhead:
      return {{0, kLastPoint}};
    case Kind::kSequence:
      *empty = true;
      for (const PatternNode& part : node.parts) {
        if (!*empty) break;
        out = unite(out, first_of(part, empty));
      }
      return out;
    case Kind::kChoice:
      for (const PatternNode& part : node.parts) {
        bool part_empty = false;
        out = unite(out, first_of(part, &part_empty));
        *empty |= part_empty;
      }
      return out;
    case Kind::kRepeat:
      out = first_of(node.parts[0], empty);
      *empty |= node.least == 0;
      return out;
  }
  return out;
}

class Parser {
 public:
  explicit Parser(const std::string& pattern) : pattern_(pattern) {
    for (size_t at = 0; at < pattern.size();) {
      const Utf8Character next = read_utf8(std::span(pattern).subspan(at));
      if (next.kind != Utf8Character::Kind::kCharacter) fail("it is not UTF-8");
      points_.push_back(next.code_point);
      at += next.bytes;
      if (points_.size() > kMaxPattern) {
        fail("more than " + std::to_string(kMaxPattern) + " characters");
      }
    }
  }

  PatternNode parse() {
    PatternNode node = choice(0);
    if (at_ < points_.size()) fail("a ) without (");
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("the pattern " + printable(pattern_, 200) + " is not supported: " + what);
  }
  bool more() const { return at_ < points_.size(); }
  uint32_t look(size_t ahead = 0) const {
    return at_ + ahead < points_.size() ? points_[at_ + ahead] : 0;
  }
  bool take(uint32_t point) {
    if (!more() || look() != point) return false;
    ++at_;
    return true;
  }
  bool take(const char* text) {
    size_t count = 0;
    for (; text[count] != 0; ++count) {
      if (at_ + count >= points_.size() || look(count) != static_cast<uint8_t>(text[count])) {
        return false;
      }
    }
    at_ += count;
    return true;
  }

  PatternNode choice(int depth) {
    if (depth > kMaxDepth) fail("groups too deep inside of each other");
    PatternNode node;
    node.kind = Kind::kChoice;
    const bool folding = any_case_;
    do {
      node.parts.push_back(sequence(depth));
    } while (take('|'));
    any_case_ = folding;
    return node.parts.size() == 1 ? std::move(node.parts[0]) : node;
  }

  PatternNode sequence(int depth) {
    PatternNode node;
    node.kind = Kind::kSequence;
    std::vector<size_t> possessive;
    while (more() && look() != '|' && look() != ')') {
      bool gives_nothing_back = false;
      node.parts.push_back(repeated(depth, &gives_nothing_back));
      if (gives_nothing_back) possessive.push_back(node.parts.size() - 1);
    }
    for (const size_t place : possessive) check_possessive(node, place);
    return node;
  }

  /// What never gives back what it took is the same as what may, where nothing that follows could take it.
  void check_possessive(const PatternNode& sequence, size_t place) const {
    bool empty = false;
    const CodePointSet taken = first_of(sequence.parts[place].parts[0], &empty);
    PatternNode behind;
    behind.kind = Kind::kSequence;
    behind.parts.assign(sequence.parts.begin() + static_cast<ptrdiff_t>(place) + 1,
                        sequence.parts.end());
    if (sequence.parts[place].parts[0].kind != Kind::kSet ||
        !intersect(taken, first_of(behind, &empty)).empty()) {
      fail("a possessive repetition that what follows it could share");
    }
  }

  PatternNode repeated(int depth, bool* possessive) {
    PatternNode node = atom(depth);
    for (;;) {
      uint32_t least = 0;
      uint32_t most = PatternNode::kAnyNumber;
      bool braces = false;
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (counted(&least, &most)) {
        braces = true;
      } else {
        return node;
      }
      if (node.kind == Kind::kAhead) fail("a repetition of what is only looked at");
      PatternNode outer;
      outer.kind = Kind::kRepeat;
      outer.least = least;
      outer.most = most;
      outer.parts.push_back(std::move(node));
      if (take('?')) outer.lazy = true;
      // Behind braces a + repeats once more.
      *possessive = !braces && !outer.lazy && take('+');
      node = std::move(outer);
      if (*possessive) return node;
    }
  }

  bool counted(uint32_t* least, uint32_t* most) {
    if (look() != '{') return false;
    const size_t before = at_++;
    std::optional<uint32_t> low = number();
    std::optional<uint32_t> high = low;
    if (take(',')) high = number().value_or(PatternNode::kAnyNumber);
    if ((!low && !high) || !take('}')) {
      at_ = before;
      return false;
    }
    *least = low.value_or(0);
    *most = *high;
    if (*least > kMaxRepeat || (*most != PatternNode::kAnyNumber && *most > kMaxRepeat) ||
        *least > *most) {
      fail("a number of repetitions above " + std::to_string(kMaxRepeat));
    }
    return true;
  }

  std::optional<uint32_t> number() {
    std::optional<uint32_t> value;
    while (more() && look() >= '0' && look() <= '9') {
      value = std::min<uint32_t>(value.value_or(0) * 10 + (look() - '0'), 100000);
      ++at_;
    }
    return value;
  }

  static PatternNode set_node(CodePointSet set) {
    PatternNode node;
    node.kind = Kind::kSet;
    node.set = std::move(set);
    return node;
  }
  PatternNode folded_node(CodePointSet set) const {
    return set_node(any_case_ ? any_case(set) : std::move(set));
  }

  PatternNode atom(int depth) {
    if (take('(')) return group(depth);
    if (take('[')) return folded_node(bracket(depth));
    if (take('.')) return set_node(complement({{'\n', '\n'}}));
    if (take('$')) {
      PatternNode node;
      node.kind = Kind::kAhead;
      node.set = {{'\n', '\n'}};
      node.at_end = true;
      return node;
    }
    if (look() == '^') fail("^, which looks back");
    if (take('\\')) return escape_node();
    const uint32_t point = look();
    if (point == '*' || point == '+' || point == '?') fail("a repetition of nothing");
    ++at_;
    return folded_node({{point, point}});
  }

  PatternNode escape_node() {
    if (take('z')) {
      PatternNode node;
      node.kind = Kind::kAhead;
      node.at_end = true;
      return node;
    }
    for (const char looks : std::string("bBAGZ123456789kg")) {
      if (look() == static_cast<uint8_t>(looks)) {
        fail(std::string("\\") + looks + ", which needs more than the next character");
      }
    }
    return folded_node(escape());
  }

  /// What stands behind a backslash, in a bracket or not.
  CodePointSet escape() {
    if (!more()) fail("a backslash at its end");
    const uint32_t point = points_[at_++];
    switch (point) {
      case 's':
        return copy(CodePoints::white_space());
      case 'S':
        return complement(copy(CodePoints::white_space()));
      case 'd':
        return *named_code_points("Nd");
      case 'D':
        return complement(*named_code_points("Nd"));
      case 'w':
        return copy(CodePoints::word_characters());
      case 'W':
        return complement(copy(CodePoints::word_characters()));
      case 'h':
        return {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
      case 'p':
        return property(false);
      case 'P':
        return property(true);
      case 'x':
      case 'u':
        return hexadecimal(point);
      default:
        break;
    }
    constexpr std::pair<char, uint32_t> kControls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'},
                                                       {'f', '\f'}, {'v', '\v'}, {'a', 7},
                                                       {'e', 27},   {'0', 0}};
    for (const auto& [letter, control] : kControls) {
      if (point == static_cast<uint8_t>(letter)) return {{control, control}};
    }
    if ((point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z') ||
        (point >= '1' && point <= '9')) {
      fail(std::string("\\") + static_cast<char>(point));
    }
    return {{point, point}};
  }

  CodePointSet hexadecimal(uint32_t letter) {
    const bool braces = letter == 'x' && take('{');
    const size_t most = braces ? 8 : letter == 'x' ? 2 : 4;
    uint32_t value = 0;
    size_t digits = 0;
    for (; digits < most && more(); ++digits, ++at_) {
      const uint32_t digit = look();
      const uint32_t low = digit | 0x20;
      if (digit >= '0' && digit <= '9') {
        value = value * 16 + (digit - '0');
      } else if (low >= 'a' && low <= 'f') {
        value = value * 16 + (low - 'a' + 10);
      } else {
        break;
      }
    }
    if (digits == 0 || value > kLastPoint || (braces && !take('}'))) fail("a bad character number");
    return {{value, value}};
  }

  CodePointSet property(bool negated) {
    if (!take('{')) fail("\\p without braces");
    if (take('^')) negated = !negated;
    std::string name;
    while (more() && look() != '}' && look() < 0x80) name += static_cast<char>(points_[at_++]);
    if (!take('}')) fail("\\p without an end");
    constexpr std::pair<const char*, const char*> kLong[] = {{"Letter", "L"},
                                                             {"Mark", "M"},
                                                             {"Number", "N"},
                                                             {"Punctuation", "P"},
                                                             {"Punct", "P"},
                                                             {"Symbol", "S"},
                                                             {"Separator", "Z"},
                                                             {"Uppercase_Letter", "Lu"},
                                                             {"Lowercase_Letter", "Ll"}};
    for (const auto& [given, used] : kLong) {
      if (name == given) name = used;
    }
    if (name == "Any") return negated ? CodePointSet() : CodePointSet{{0, kLastPoint}};
    const auto found = named_code_points(name);
    if (!found) fail("\\p{" + printable(name, 40) + "}");
    const CodePointSet set = tidy(*found);
    return negated ? complement(set) : set;
  }

  CodePointSet bracket(int depth) {
    if (depth > kMaxDepth) fail("brackets too deep inside of each other");
    const bool negated = take('^');
    CodePointSet set;
    std::optional<CodePointSet> both;
    for (bool first = true;; first = false) {
      if (!more()) fail("a bracket without an end");
      if (!first && take(']')) break;
      if (take("&&")) {
        both = both ? intersect(*both, set) : set;
        set.clear();
        continue;
      }
      if (look() == '[' && look(1) == ':') fail("[:, a POSIX bracket");
      set = unite(set, item(depth));
    }
    if (both) set = intersect(*both, set);
    return negated ? complement(set) : set;
  }

  /// A character, a range of them, a set or another bracket.
  CodePointSet item(int depth) {
    if (take('[')) return bracket(depth + 1);
    const auto one = [&]() -> CodePointSet {
      if (take('\\')) return escape();
      const uint32_t point = points_[at_++];
      return {{point, point}};
    };
    const CodePointSet low = one();
    const bool single = low.size() == 1 && low[0].first == low[0].last;
    if (!single || look() != '-' || look(1) == ']' || look(1) == '[' || at_ + 1 >= points_.size()) {
      return low;
    }
    ++at_;
    const CodePointSet high = one();
    if (high.size() != 1 || high[0].first != high[0].last || high[0].first < low[0].first) {
      fail("a range of characters that goes backwards");
    }
    return {{low[0].first, high[0].first}};
  }

  PatternNode group(int depth) {
    const bool folding = any_case_;
    PatternNode node;
    if (take("?i:")) {
      any_case_ = true;
      node = choice(depth + 1);
    } else if (take("?-i:")) {
      any_case_ = false;
      node = choice(depth + 1);
    } else if (take("?i)")) {
      // For the rest of the group it stands in.
      any_case_ = true;
      return node;
    } else if (take("?:")) {
      node = choice(depth + 1);
    } else if (take("?=")) {
      node = ahead(choice(depth + 1), false);
    } else if (take("?!")) {
      node = ahead(choice(depth + 1), true);
    } else if (look() == '?') {
      fail("a group that begins with (?" +
           printable(std::string(1, static_cast<char>(look(1))), 4) +
           ", which looks back or gives nothing back");
    } else {
      node = choice(depth + 1);
    }
    if (!take(')')) fail("a ( without )");
    any_case_ = folding;
    return node;
  }

  PatternNode ahead(const PatternNode& what, bool negated) {
    const std::optional<CodePointSet> set = single(what);
    if (!set) fail("looking further ahead than one character");
    PatternNode node;
    node.kind = Kind::kAhead;
    node.set = negated ? complement(*set) : *set;
    node.at_end = negated;
    return node;
  }

  /// The characters of a part that is always one character.
  static std::optional<CodePointSet> single(const PatternNode& node) {
    if (node.kind == Kind::kSet) return node.set;
    if (node.kind == Kind::kSequence && node.parts.size() == 1) return single(node.parts[0]);
    // Of several the first is enough.
    if (node.kind == Kind::kRepeat && node.least == 1) return single(node.parts[0]);
    if (node.kind != Kind::kChoice) return std::nullopt;
    CodePointSet out;
    for (const PatternNode& part : node.parts) {
      const std::optional<CodePointSet> set = single(part);
      if (!set) return std::nullopt;
      out = unite(out, *set);
    }
    return out;
  }

  std::string pattern_;
  std::vector<uint32_t> points_;
  size_t at_ = 0;
  bool any_case_ = false;
};

}  // namespace

CodePointSet unite(CodePointSet a, const CodePointSet& b) {
  a.insert(a.end(), b.begin(), b.end());
  return tidy(std::move(a));
}

CodePointSet complement(const CodePointSet& set) {
  CodePointSet out;
  uint32_t next = 0;
  for (const CodePointRange& range : tidy(set)) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastPoint) out.push_back({next, kLastPoint});
  return out;
}

PatternNode parse_pattern(const std::string& pattern) { return Parser(pattern).parse(); }

PatternNode literal_pattern(const std::string& text) {
  PatternNode node;
  node.kind = Kind::kSequence;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = read_utf8(std::span(text).subspan(at));
    if (next.kind != Utf8Character::Kind::kCharacter) {
      throw InputError("the text to split at, " + printable(text, 60) + ", is not UTF-8");
    }
    PatternNode part;
    part.kind = Kind::kSet;
    part.set = {{next.code_point, next.code_point}};
    node.parts.push_back(std::move(part));
    at += next.bytes;
  }
  return node;
}

}  // namespace oxbow::convert
