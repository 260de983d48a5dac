#include "host/args.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "host/errors.h"
#include "host/number_text.h"
#include "runtime/base/checked.h"

namespace oxbow {
namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t star = std::string_view::npos, star_text = 0, p = 0, t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string closest_match(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  // A third of the letters may be wrong; more is a guess that helps nobody. Dashes are right by themselves.
  const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  size_t best_distance = letters / 3 + 2;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::optional<uint64_t> parse_integer(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_size(const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789");
  const std::optional<uint64_t> value = parse_integer(text.substr(0, digits));
  if (!value) return std::nullopt;
  if (digits == std::string::npos) return value;
  const std::string suffix = text.substr(digits);
  uint64_t unit = 0;
  for (const auto& [letter, bytes] :
       {std::pair<char, uint64_t>{'K', 1ull << 10}, std::pair<char, uint64_t>{'M', 1ull << 20},
        std::pair<char, uint64_t>{'G', 1ull << 30}}) {
    if (suffix == std::string(1, letter) || suffix == std::string(1, letter) + "iB") unit = bytes;
  }
  uint64_t bytes = 0;
  if (unit == 0 || !checked_mul(*value, unit, &bytes)) return std::nullopt;
  return bytes;
}

Args::Args(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {}

void Args::positional(const std::string& name, const std::string& help, bool required) {
  positionals_.push_back({name, name, help, 0, required, false, ""});
}

void Args::positional_list(const std::string& name, const std::string& help) {
  positionals_.push_back({name, name, help, 0, true, true, ""});
}

void Args::option(const std::string& name, const std::string& value_name, const std::string& help,
                  char letter) {
  options_.push_back({name, value_name, help, letter, false, false, ""});
}

void Args::repeated(const std::string& name, const std::string& value_name,
                    const std::string& help) {
  options_.push_back({name, value_name, help, 0, false, true, ""});
}

void Args::alias(const std::string& name, const std::string& other) {
  for (Declared& option : options_) {
    if (option.name == name) option.alias = other;
  }
}

void Args::flag(const std::string& name, const std::string& help, char letter) {
  options_.push_back({name, "", help, letter, false, false, ""});
}

const Args::Declared* Args::find_option(const std::string& name) const {
  for (const Declared& option : options_) {
    if (option.name == name || (!name.empty() && option.alias == name)) return &option;
  }
  return nullptr;
}

const Args::Declared* Args::find_letter(char letter) const {
  for (const Declared& option : options_) {
    if (option.letter != 0 && option.letter == letter) return &option;
  }
  return nullptr;
}

void Args::fail_unknown(const std::string& word) const {
  std::vector<std::string> names = {"--help"};
  for (const Declared& option : options_) {
    names.push_back("--" + option.name);
    if (!option.alias.empty()) names.push_back("--" + option.alias);
  }
  const std::string guess = closest_match(word.substr(0, 64), names);
  throw UsageError("option " + printable(word) + " is unknown" +
                   (guess.empty() ? "; see --help" : "; did you mean " + guess + "?"));
}

void Args::set(const Declared& declared, const std::string& value) {
  std::vector<std::string>& values = values_[declared.name];
  if (!values.empty() && !declared.repeated) {
    throw UsageError("--" + declared.name + " is given twice, expected once");
  }
  values.push_back(value);
}

void Args::parse(int argc, const char* const* argv, int first) {
  parse(std::vector<std::string>(argv + std::min(first, argc), argv + argc));
}

void Args::parse(const std::vector<std::string>& words) {
  words_ = words;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word == "--help" || word == "-h") {
      help_wanted_ = true;
      return;
    }
  }

  size_t position = 0;
  bool options_end = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!options_end && word == "--") {
      options_end = true;
      continue;
    }
    if (options_end || word.size() < 2 || word[0] != '-') {
      if (position == positionals_.size()) {
        throw UsageError("argument '" + printable(word) + "' is one too many; see --help");
      }
      set(positionals_[position], word);
      if (!positionals_[position].repeated) ++position;
      continue;
    }

    const bool is_long = word[1] == '-';
    const size_t equals = is_long ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const Declared* option = is_long            ? find_option(name.substr(2))
                             : word.size() == 2 ? find_letter(word[1])
                                                : nullptr;
    if (option == nullptr) fail_unknown(name);
    if (!option->takes_value()) {
      if (equals != std::string::npos) throw UsageError(name + " takes no value");
      set(*option, "");
    } else if (equals != std::string::npos) {
      set(*option, word.substr(equals + 1));
    } else {
      // A following option is a forgotten value far more often than a value that looks like one.
      if (i + 1 == words.size() || words[i + 1].starts_with("--")) {
        throw UsageError(name + " needs a value: " + name + " " + option->value_name);
      }
      set(*option, words[++i]);
    }
  }
  for (const Declared& declared : positionals_) {
    if (declared.required && !has(declared.name)) {
      throw UsageError(declared.name + " is missing: " + declared.help + "; see --help");
    }
  }
}

std::string Args::help() const {
  std::string usage = "usage: " + program_;
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Declared& p : positionals_) {
    usage += p.required ? " " + p.name : " [" + p.name + "]";
    if (p.repeated) usage += " ...";
    rows.emplace_back(p.name, p.help);
  }
  if (!options_.empty()) usage += " [options]";
  for (const Declared& o : options_) {
    const std::string letter = o.letter != 0 ? std::string("-") + o.letter + ", " : "    ";
    const std::string alias = o.alias.empty() ? "" : ", --" + o.alias;
    rows.emplace_back(letter + "--" + o.name + alias + (o.takes_value() ? " " + o.value_name : ""),
                      o.help);
  }
  rows.emplace_back("-h, --help", "print this and exit");

  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, std::min<size_t>(row.first.size(), 34));
  std::string out = usage + "\n" + summary_ + "\n\n";
  for (const auto& [left, right] : rows) {
    out += "  " + left;
    if (left.size() > width) {
      out += "\n" + std::string(width + 4, ' ');
    } else {
      out += std::string(width + 2 - left.size(), ' ');
    }
    out += right + "\n";
  }
  return out;
}

bool Args::has(const std::string& name) const { return values_.contains(name); }

std::optional<std::string> Args::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.front();
}

std::string Args::text(const std::string& name, const std::string& fallback) const {
  return text(name).value_or(fallback);
}

Args Args::with(const std::string& name, const std::string& value) const {
  Args copy = *this;
  copy.values_[name] = {value};
  return copy;
}

std::vector<std::string> Args::texts(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

uint64_t Args::integer(const std::string& name, uint64_t fallback, uint64_t min,
                       uint64_t max) const {
  const std::optional<std::string> given = text(name);
  if (!given) return fallback;
  const std::optional<uint64_t> value = parse_integer(*given);
  if (!value || *value < min || *value > max) {
    // The largest number there is says nothing to anybody.
    throw UsageError("--" + name + " is '" + printable(*given) + "', expected an integer" +
                     (max == UINT64_MAX
                          ? (min == 0 ? std::string() : ", " + std::to_string(min) + " or more")
                          : " from " + std::to_string(min) + " to " + std::to_string(max)));
  }
  return *value;
}

double Args::number(const std::string& name, double fallback, double min, double max) const {
  const std::optional<std::string> given = text(name);
  if (!given) return fallback;
  const std::optional<double> value = parse_number(*given);
  if (!value || *value < min || *value > max) {
    throw UsageError("--" + name + " is '" + printable(*given) + "', expected a number from " +
                     number_text(min) + " to " + number_text(max));
  }
  return *value;
}

uint64_t Args::size(const std::string& name, uint64_t fallback, uint64_t min, uint64_t max) const {
  const std::optional<std::string> given = text(name);
  if (!given) return fallback;
  const std::optional<uint64_t> value = parse_size(*given);
  if (!value || *value < min || *value > max) {
    throw UsageError(
        "--" + name + " is '" + printable(*given) + "', expected bytes such as 65536, 64K or 16M" +
        (max == UINT64_MAX ? std::string()
                           : ", from " + std::to_string(min) + " to " + std::to_string(max)));
  }
  return *value;
}

std::string Args::choice(const std::string& name, const std::string& fallback,
                         const std::vector<std::string>& choices) const {
  const std::string given = text(name, fallback);
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return given;
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  throw UsageError("--" + name + " is '" + printable(given) + "', expected one of: " + list);
}

}  // namespace oxbow
