#pragma once

// The command line of a program: declared once, then parsed strictly and asked with types and
// ranges. The same declarations make the --help text. Anything unknown, repeated, missing or out of
// range is a UsageError that says what was expected.
//
//   Args args("oxbow bench", "measures a model");
//   args.positional("model.oxb", "the model file");
//   args.option("prefill", "N", "tokens of the first, long run");
//   args.flag("json", "print JSON only");
//   args.parse(argc, argv, 2);
//   if (args.help_wanted()) { puts(args.help()); return 0; }
//   uint64_t n = args.integer("prefill", 512, 1, 1000000);

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow {

class Args {
 public:
  /// A positional argument, an option or a flag: what --help, the manual and completion are made from.
  struct Declared {
    std::string name, value_name, help;
    char letter = 0;
    bool required = false;
    bool repeated = false;
    /// Another long name; empty: none.
    std::string alias;
    bool takes_value() const { return !value_name.empty(); }
  };

  /// `program` is what the user typed to get here, `summary` one sentence for --help.
  Args(std::string program, std::string summary);

  /// Positional arguments in the order they are declared; all required ones first.
  void positional(const std::string& name, const std::string& help, bool required = true);
  /// The last of them: one or more.
  void positional_list(const std::string& name, const std::string& help);
  /// --name VALUE or --name=VALUE, and -x VALUE when `letter` is given.
  void option(const std::string& name, const std::string& value_name, const std::string& help,
              char letter = 0);
  /// The same, any number of times.
  void repeated(const std::string& name, const std::string& value_name, const std::string& help);
  /// Another long name of an option that was declared before.
  void alias(const std::string& name, const std::string& other);
  /// --name, without a value.
  void flag(const std::string& name, const std::string& help, char letter = 0);

  /// Reads argv[first..argc). With --help (or -h) among them nothing else is checked.
  void parse(int argc, const char* const* argv, int first = 1);
  void parse(const std::vector<std::string>& words);

  const std::string& program() const { return program_; }
  const std::string& summary() const { return summary_; }
  const std::vector<Declared>& positionals() const { return positionals_; }
  const std::vector<Declared>& options() const { return options_; }
  /// What was parsed.
  const std::vector<std::string>& words() const { return words_; }

  bool help_wanted() const { return help_wanted_; }
  /// Usage line, arguments and options, ending in a newline.
  std::string help() const;

  /// True when the flag, option or positional argument was given.
  bool has(const std::string& name) const;
  /// Nothing when it was not given.
  std::optional<std::string> text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  /// The same arguments, but that this one was given once with this value.
  Args with(const std::string& name, const std::string& value) const;
  /// All values of an option that may be repeated, in their order.
  std::vector<std::string> texts(const std::string& name) const;
  /// A decimal integer within [min, max].
  uint64_t integer(const std::string& name, uint64_t fallback, uint64_t min, uint64_t max) const;
  /// A finite number within [min, max].
  double number(const std::string& name, double fallback, double min, double max) const;
  /// Bytes: an integer, optionally with K, M or G (powers of 1024; KiB, MiB, GiB mean the same).
  uint64_t size(const std::string& name, uint64_t fallback, uint64_t min, uint64_t max) const;
  /// One of `choices`.
  std::string choice(const std::string& name, const std::string& fallback,
                     const std::vector<std::string>& choices) const;

 private:
  const Declared* find_option(const std::string& name) const;
  const Declared* find_letter(char letter) const;
  void set(const Declared& declared, const std::string& value);
  [[noreturn]] void fail_unknown(const std::string& word) const;

  std::string program_, summary_;
  std::vector<Declared> positionals_, options_;
  std::vector<std::string> words_;
  std::map<std::string, std::vector<std::string>> values_;
  bool help_wanted_ = false;
};

/// The one of `candidates` with the smallest edit distance to `word`; empty when none is near.
std::string closest_match(const std::string& word, const std::vector<std::string>& candidates);

/// Whether all of `text` is as the pattern says, in which * stands for anything and ? for one character.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// Strict numbers: the whole text, in range of the type; nothing otherwise.
std::optional<uint64_t> parse_integer(const std::string& text);
std::optional<double> parse_number(const std::string& text);
std::optional<uint64_t> parse_size(const std::string& text);

}  // namespace oxbow
