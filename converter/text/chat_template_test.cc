#include "converter/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "host/errors.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using ::testing::HasSubstr;

const std::map<std::string, std::string> kTokens = {
    {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
const std::filesystem::path kFolder =
    std::filesystem::path(testing::source_dir()) / "tests/chat_templates";

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> templates() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "templates")) {
    if (entry.path().extension() == ".jinja") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string refusal(const std::string& chat_template) {
  try {
    render_chat(chat_template, kTokens);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// Rendered or refused, and nothing else.
void expect_end(const std::string& chat_template) {
  try {
    render_chat(chat_template, kTokens);
  } catch (const InputError&) {
  }
}

std::string repeated(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(ChatTemplate, GivesTheTextsOfTheOriginal) {
  ASSERT_GE(templates().size(), 12u);
  for (const std::filesystem::path& path : templates()) {
    SCOPED_TRACE(path.filename());
    const auto expected =
        nlohmann::json::parse(read_text(std::filesystem::path(path).replace_extension(".json")));
    const ChatTexts texts = render_chat(read_text(path), kTokens);
    EXPECT_EQ(texts.before, expected["before"].get<std::string>());
    EXPECT_EQ(texts.after, expected["after"].get<std::string>());
  }
}

/// A chat as the runtime writes it: see converter/text/chat_template.h.
std::string put_together(const ChatTexts& texts, const std::vector<std::string>& turns,
                         const std::string& system) {
  std::string out =
      system.empty() ? texts.before : *texts.system_before + system + *texts.system_after;
  for (size_t i = 0; i < turns.size(); ++i) {
    out += i % 2 == 0 ? turns[i] + texts.after : texts.lead + turns[i] + *texts.next;
  }
  return out;
}

TEST(ChatTemplate, ChatsArePutTogetherAsTheOriginalWritesThem) {
  const std::vector<std::string> two = {"One?", "Eins.", "Two?"};
  const std::vector<std::string> three = {"One?", "Eins.", "Two?", "Zwei.", "Three?"};
  size_t talks = 0, systems = 0, trims = 0;
  for (const std::filesystem::path& path : templates()) {
    SCOPED_TRACE(path.filename());
    const nlohmann::json chats = nlohmann::json::parse(
        read_text(std::filesystem::path(path).replace_extension(".json")))["chats"];
    const ChatTexts texts = render_chat(read_text(path), kTokens);
    if (texts.next) {
      ++talks;
      EXPECT_EQ(put_together(texts, two, ""), chats[0].get<std::string>());
      EXPECT_EQ(put_together(texts, three, ""), chats[1].get<std::string>());
    } else {
      EXPECT_NE(texts.next_note, "");
    }
    if (texts.system_before) {
      ++systems;
      EXPECT_EQ(put_together(texts, {"One?"}, "Count."), chats[2].get<std::string>());
      if (texts.next) {
        EXPECT_EQ(put_together(texts, three, "Count."), chats[3].get<std::string>());
      }
    } else {
      EXPECT_NE(texts.system_note, "");
    }
    const bool trimmed = (texts.trims & kChatUser) != 0;
    trims += trimmed;
    EXPECT_EQ(put_together(texts, {trimmed ? "One?" : " One? \n"}, ""),
              chats[4].get<std::string>());
  }
  // As many as there are today.
  EXPECT_GE(talks, 12u);
  EXPECT_GE(systems, 9u);
  EXPECT_GE(trims, 3u);
}

TEST(ChatTemplate, AChatThatChangesWhatWasSaidHasOneQuestion) {
  const ChatTexts texts =
      render_chat("{% for m in messages[-1:] %}[{{ m.content }}]{% endfor %}", kTokens);
  EXPECT_EQ(texts.before, "[");
  EXPECT_FALSE(texts.next);
  EXPECT_THAT(texts.next_note, HasSubstr("not shown as it was"));
  EXPECT_FALSE(texts.system_before);
}

TEST(ChatTemplate, SaysWhatItDoesNotSupportAndWhere) {
  const std::map<std::string, std::string> expected = {
      {"date", "line 1: \"strftime_now\" is not supported: the text would depend on the day"},
      {"system_needed", "line 2: the template refuses the chat: \"A system message"},
      {"selectattr", "line 1: the filter \"selectattr\" is not supported"},
      {"upper", "does not show the message as it is"},
      {"json", "does not show the message as it is"},
      {"twice", "does not show the message as it is"},
      {"length", "what stands around the message depends on the message"},
      {"nobody", "does not show the message as it is"},
      {"undefined", "line 1: the undefined \"sender\" has no attribute \"name\""},
      {"include", "line 1: the tag \"include\" is not supported"},
      {"printed", "line 1: printing a list is not supported"},
      {"range", "line 1: \"range\" of more than 100000 numbers"},
  };
  for (const auto& [name, text] : expected) {
    EXPECT_THAT(refusal(read_text(kFolder / "refused" / (name + ".jinja"))), HasSubstr(text));
  }
}

TEST(ChatTemplate, TokensThatAreNotGivenPrintNothing) {
  const ChatTexts texts = render_chat("{{ bos_token }}[{{ messages[0].content }}]", {});
  EXPECT_EQ(texts.before, "[");
  EXPECT_EQ(texts.after, "]");
}

TEST(ChatTemplate, RefusesWhatIsTooLargeOrNotUtf8) {
  EXPECT_THAT(refusal(std::string((1 << 20) + 1, ' ')), HasSubstr("expected up to 1048576"));
  EXPECT_THAT(refusal("ab\xff"), HasSubstr("not UTF-8 at byte 2"));
  EXPECT_THROW(render_chat("{{ messages[0].content }}", {{"bos_token", "\xc0"}}), InputError);
}

TEST(ChatTemplate, RefusesDeepNesting) {
  const std::pair<const char*, const char*> brackets[] = {
      {"(", ")"},  {"[", "]"},  {"{'a':", "}"},       {"not ", ""},     {"-", ""},
      {"x[", "]"}, {"f(", ")"}, {"1 if 1 else ", ""}, {"x is y (", ")"}};
  for (const size_t depth : {100, 10'000, 60'000}) {
    for (const auto& [open, close] : brackets) {
      EXPECT_THAT(refusal("{{ " + repeated(open, depth) + "1" + repeated(close, depth) + " }}"),
                  HasSubstr("nested deeper than"))
          << open;
    }
    for (const char* open : {"{% if 1 %}", "{% for x in y %}", "{% set x %}", "{% macro f() %}"}) {
      EXPECT_THAT(refusal(repeated(open, depth)), HasSubstr("nested deeper than"));
    }
  }
}

TEST(ChatTemplate, LongChainsAreNotDeep) {
  const std::string message = "{{ messages[0].content }}";
  EXPECT_EQ(render_chat("{{ 0" + repeated(" + 1", 1000) + " }}" + message, {}).before, "1000");
  EXPECT_EQ(render_chat("{{ 'a'" + repeated("|upper", 1000) + " }}" + message, {}).before, "A");
  EXPECT_EQ(render_chat("{{ 'a'" + repeated(".strip()", 1000) + " }}" + message, {}).before, "a");
  const std::string branches = repeated("{% elif 0 %}a", 1000);
  EXPECT_EQ(render_chat("{% if 0 %}" + branches + "{% else %}b{% endif %}" + message, {}).before,
            "b");
  for (const char* link :
       {" + 1", " ~ 1", "|a", ".a", "()", "[0]", " is b", " < 1", " and 1", " or x"}) {
    expect_end("{{ x" + repeated(link, 150'000) + " }}");
  }
}

TEST(ChatTemplate, EndsWhateverTheTemplateDoes) {
  const char* const bombs[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(a) %}{% if a %}{{ f([a]) }}{% endif %}{% endmacro %}{{ f(1) }}",
      "{{ 'a' * 1000000000000 }}",
      "{{ 'ab' * 1000000 }}",
      "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor "
      "%}",
      "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor "
      "%}",
      "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s|replace('a', n.s) "
      "%}{% "
      "endfor %}",
      "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
      "{% set n = namespace(s=[1]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}",
      "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}"
      "{{ n.s|tojson }}",
      "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}"
      "{{ n.s == n.s }}",
      "{% set n = namespace(s={'a': 1}) %}{% for i in range(99) %}{% set n.s = {'a': n.s} %}{% "
      "endfor %}",
      "{% for i in range(99999) %}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% "
      "endfor %}",
      "{{ 9223372036854775807 * 2 }}",
      "{{ (0 - 9223372036854775807 - 1) // -1 }}",
      "{{ -(0 - 9223372036854775807 - 1) }}",
      "{{ 99999999999999999999 }}",
      "{{ range(0 - 9223372036854775807, 9223372036854775807) }}",
  };
  for (const char* bomb : bombs) {
    EXPECT_THAT(refusal(bomb), HasSubstr("line 1: ")) << bomb;
  }
  // A namespace in itself is nobody's memory, and a remainder that fits is no overflow.
  const std::string message = "{{ messages[0].content }}";
  EXPECT_NO_THROW(render_chat("{% set n = namespace() %}{% set n.n = [n] %}" + message, {}));
  EXPECT_EQ(render_chat("{{ (0 - 9223372036854775807 - 1) % -1 }}" + message, {}).before, "0");
}

TEST(ChatTemplate, StandsBeingCutAnywhere) {
  for (const std::filesystem::path& path : templates()) {
    const std::string text = read_text(path);
    for (size_t size = 0; size < text.size(); ++size) expect_end(text.substr(0, size));
  }
}

TEST(ChatTemplate, StandsGarbage) {
  std::string all;
  for (const std::filesystem::path& path : templates()) all += read_text(path);
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int piece = 0; piece < 12; ++piece) {
      if (random() % 4 == 0) {
        for (int i = 0; i < 8; ++i) text += static_cast<char>(random() % 128);
      } else {
        text += all.substr(random() % all.size(), random() % 40);
      }
    }
    expect_end(text);
  }
}

}  // namespace
}  // namespace oxbow::convert
