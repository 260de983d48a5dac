#include "converter/text/jinja/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "converter/text/jinja/parser.h"
#include "host/errors.h"
#include "host/testing/paths.h"

namespace oxbow::convert::jinja {
namespace {

using ::testing::HasSubstr;

/// With the names that tests/chat_templates/make.py sets.
std::string render(const std::string& source) {
  Meter meter;
  std::map<std::string, Value> names;
  const Value turn = make_dict(
      meter, {{"role", make_text(meter, "user")}, {"content", make_text(meter, " Hi you ")}});
  names["messages"] = make_list(meter, {turn, turn, turn});
  names["add_generation_prompt"] = true;
  names["tools"] = None{};
  names["documents"] = None{};
  names["bos_token"] = make_text(meter, "<s>");
  return run(parse_template(source), std::move(names), meter);
}

std::optional<std::string> rendered(const std::string& source) {
  try {
    return render(source);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

TEST(JinjaEvaluator, PrintsAndRefusesWhatTheOriginalDoes) {
  std::ifstream file(testing::source_dir() + "/tests/chat_templates/snippets.json");
  const nlohmann::json snippets = nlohmann::json::parse(file);
  ASSERT_GT(snippets.size(), 300u);
  for (const auto& snippet : snippets) {
    const auto expected = snippet[1].is_null()
                              ? std::nullopt
                              : std::optional<std::string>(snippet[1].get<std::string>());
    EXPECT_EQ(rendered(snippet[0]), expected) << snippet[0];
  }
}

TEST(JinjaEvaluator, NamesWhatIsNotSupported) {
  const std::pair<const char*, const char*> snippets[] = {
      {"{{ 1.5 }}", "the number at \"1.\" is not supported"},
      {"{{ 2 ** 3 }}", "the operator \"**\" is not supported"},
      {"{{ 7 / 2 }}", "the operator \"/\" of an integer and an integer"},
      {"\n{{ [1]|sort }}", "line 2: the filter \"sort\" is not supported"},
      {"{{ 4 is divisibleby 2 }}", "the test \"divisibleby\" is not supported"},
      {"{{ 'x'.isdigit() }}", "the method \"isdigit\" of a string is not supported"},
      {"{{ 'x'.upper }}", "the attribute \"upper\" of a string is not supported"},
      {"{{ 'x'.__class__ }}", "the attribute \"__class__\" of a string is not supported"},
      {"{{ messages.append(1) }}", "the method \"append\" of a list is not supported"},
      {"{{ 'a'|replace('a', 'b', 1) }}", "the filter \"replace\" with 3 arguments"},
      {"{{ 'a'|tojson(indent=2) }}", "the filter \"tojson\" with the argument \"indent\""},
      {"{{ f(*x) }}", "arguments with \"*\" are not supported"},
      {"{{ dict(a=1) }}", "\"dict\" is not supported"},
      {"{{ '\xc3\x89'|lower }}", "of text that is not ASCII is not supported"},
      {"{{ '\\ud800' }}", "an escape is not a Unicode character"},
      {"{{ '\\N{BULLET}' }}", "the escape \"\\N\" is not supported"},
      {"{{ {1: 2} }}", "a key that is an integer is not supported"},
      {"{{ {} }}", "printing a mapping is not supported"},
      {"{% raw %}{% endraw %}", "the tag \"raw\" is not supported"},
      {"{% with %}{% endwith %}", "the tag \"with\" is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "recursive loops are not supported"},
      {"{% for x in [1] %}{{ loop.cycle(1) }}{% endfor %}", "loop.cycle is not supported"},
      {"{% for x in [1] %}{% macro f() %}{% endmacro %}{% endfor %}", "a macro inside a loop"},
      {"{{ \xc3\xa9 }}", "the name \"\xc3\xa9\" is not supported"},
      {"a{#", "the comment is not closed"},
      {"{{ 'a", "the string is not closed"},
      {"{{ 'a'", "the tag is not closed, expected }}"},
      {"\n{% if x %}\n", "line 2: unexpected end of the template, expected {% endif %}"},
  };
  for (const auto& [source, expected] : snippets) {
    try {
      render(source);
      ADD_FAILURE() << source << " was not refused";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected)) << source;
    }
  }
}

TEST(JinjaEvaluator, WhatIsNotReachedNeedNotBeSupported) {
  EXPECT_EQ(render("{% if tools %}{{ tools|map('x')|tojson(indent=4) }}{% endif %}a"), "a");
  EXPECT_EQ(render("{{ 'a' if true else strftime_now('%d') }}"), "a");
}

}  // namespace
}  // namespace oxbow::convert::jinja
