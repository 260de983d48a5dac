#include "host/args.h"

#include <gtest/gtest.h>

#include "host/errors.h"

namespace oxbow {
namespace {

Args example() {
  Args args("prog", "does things");
  args.positional("FILE", "the file");
  args.positional("OTHER", "another", false);
  args.option("count", "N", "how many");
  args.option("ratio", "X", "how much");
  args.option("memory", "BYTES", "how large");
  args.option("output", "FILE", "where to", 'o');
  args.repeated("stop", "TEXT", "where to stop");
  args.flag("json", "as JSON");
  return args;
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    Args args = example();
    args.parse(words);
    args.integer("count", 0, 1, 10);
    args.number("ratio", 0, 0, 1);
    args.size("memory", 0, 1, uint64_t{1} << 40);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Args, ReadsEveryForm) {
  Args args = example();
  args.parse({"in", "--count", "7", "--ratio=0.25", "-o", "out", "--json", "--", "--odd"});
  EXPECT_EQ(args.text("FILE", ""), "in");
  EXPECT_EQ(args.text("OTHER", ""), "--odd");
  EXPECT_EQ(args.integer("count", 0, 1, 10), 7u);
  EXPECT_EQ(args.number("ratio", 0, 0, 1), 0.25);
  EXPECT_EQ(args.text("output", ""), "out");
  EXPECT_TRUE(args.has("json"));
  EXPECT_EQ(args.size("memory", 5, 1, 10), 5u);
}

TEST(Args, SomeOptionsMayBeRepeated) {
  Args args = example();
  args.parse({"in", "--stop", "b", "--json", "--stop=a", "--stop="});
  EXPECT_EQ(args.texts("stop"), (std::vector<std::string>{"b", "a", ""}));
  EXPECT_EQ(args.text("stop", ""), "b");
  EXPECT_TRUE(args.texts("count").empty());
  EXPECT_EQ(refusal({"in", "--stop"}), "--stop needs a value: --stop TEXT");
  EXPECT_EQ(refusal({"in", "--count", "1", "--count", "1"}),
            "--count is given twice, expected once");
}

TEST(Args, AValueMayStartWithOneDashButNotLookLikeAnOption) {
  Args args = example();
  args.parse({"in", "--output", "-"});
  EXPECT_EQ(args.text("output", ""), "-");
  EXPECT_EQ(refusal({"in", "--output", "--json"}), "--output needs a value: --output FILE");
  EXPECT_EQ(refusal({"in", "--output"}), "--output needs a value: --output FILE");
}

TEST(Args, RefusesWithTheReason) {
  EXPECT_EQ(refusal({"in", "--cuont", "7"}), "option --cuont is unknown; did you mean --count?");
  EXPECT_EQ(refusal({"in", "--zzzzzzzzzz"}), "option --zzzzzzzzzz is unknown; see --help");
  EXPECT_EQ(refusal({"in", "-x"}), "option -x is unknown; see --help");
  EXPECT_EQ(refusal({}), "FILE is missing: the file; see --help");
  EXPECT_EQ(refusal({"a", "b", "c"}), "argument 'c' is one too many; see --help");
  EXPECT_EQ(refusal({"in", "--json=1"}), "--json takes no value");
  EXPECT_EQ(refusal({"in", "--json", "--json"}), "--json is given twice, expected once");
  EXPECT_EQ(refusal({"in", "--count", "11"}), "--count is '11', expected an integer from 1 to 10");
  EXPECT_EQ(refusal({"in", "--memory", "12Q"}).find("--memory is '12Q', expected bytes"), 0u);
}

TEST(Args, NumbersAreTakenWholeOrNotAtAll) {
  for (const char* text : {"", "7x", " 7", "-1", "+1", "0x7", "1e3", "99999999999999999999"}) {
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
  }
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1.5x", " 1"}) {
    EXPECT_FALSE(parse_number(text).has_value()) << text;
  }
  EXPECT_EQ(parse_number("-1.5e2"), -150.0);
  EXPECT_EQ(parse_size("64K"), uint64_t{65536});
  EXPECT_EQ(parse_size("3MiB"), uint64_t{3} << 20);
  EXPECT_EQ(parse_size("17"), uint64_t{17});
  EXPECT_FALSE(parse_size("K").has_value());
  EXPECT_FALSE(parse_size("99999999999999G").has_value());
}

TEST(Args, HelpNamesEverythingAndChecksNothing) {
  Args args = example();
  args.parse({"--nonsense", "--help"});
  EXPECT_TRUE(args.help_wanted());
  for (const char* word : {"usage: prog FILE [OTHER]", "does things", "-o, --output FILE", "--json",
                           "--count N", "how many", "--help"}) {
    EXPECT_NE(args.help().find(word), std::string::npos) << word;
  }
}

TEST(Args, ChoicesAreListed) {
  Args args = example();
  args.parse({"in", "--output", "blue"});
  EXPECT_EQ(args.choice("output", "red", {"red", "blue"}), "blue");
  try {
    args.choice("output", "red", {"red", "green"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--output is 'blue', expected one of: red, green");
  }
}

TEST(Errors, TextFromOutsideCannotBreakTheLine) {
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a?b?[31m");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("caf\u00e9 \u4e2d \U0001f600"), "caf\u00e9 \u4e2d \U0001f600");
  // Controls of eight bits, alone and in UTF-8, marks of direction, and characters that are cut off.
  EXPECT_EQ(printable("a\x9b"
                      "2J\u009b2J\x7f"),
            "a?2J?2J?");
  EXPECT_EQ(printable("a\xed\xa0\x80\xe0\x80\x80\xf4\x90\x80\x80z"), "a???z")
      << "surrogates, overlong, too large";
  EXPECT_EQ(printable("\u202etxt.exe\u2066\u200f\u2028"), "?txt.exe???");
  EXPECT_EQ(printable("a\xe4\xb8"
                      "b\xf0\x9f\x98"),
            "a?b?");
}

TEST(Args, TheLastPositionalArgumentMayBeAList) {
  Args args("tool", "does something");
  args.positional_list("file", "what to read");
  args.option("number", "N", "a number");
  args.parse({"a", "--number", "3", "b", "--", "-c"});
  EXPECT_EQ(args.texts("file"), (std::vector<std::string>{"a", "b", "-c"}));
  EXPECT_NE(args.help().find("usage: tool file ... [options]"), std::string::npos);
  const Args one = args.with("file", "b").with("number", "4");
  EXPECT_EQ(one.texts("file"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(one.integer("number", 0, 0, 9), 4u);
  EXPECT_EQ(args.integer("number", 0, 0, 9), 3u);
  Args none("tool", "does something");
  none.positional_list("file", "what to read");
  EXPECT_THROW(none.parse(std::vector<std::string>{}), UsageError);
}

}  // namespace
}  // namespace oxbow
