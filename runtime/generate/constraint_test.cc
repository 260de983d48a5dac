#include "runtime/generate/constraint.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace oxbow {
namespace {

/// Whether all of it can be written, and then ends there.
bool is_json(std::string_view text, bool object_only = false) {
  JsonGrammar json;
  json.start(object_only);
  return json.steps(text) && json.complete();
}

/// Whether something can follow.
bool begins_json(std::string_view text) {
  JsonGrammar json;
  json.start(false);
  return json.steps(text);
}

TEST(JsonGrammar, TakesEveryKindOfValue) {
  for (const char* text :
       {"{}", "[]", "\"\"", "0", "-1", "12.5e-3", "1E+9", "true", "false", "null", " { } ",
        "{\"a\":1}", "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", "[[],[[]]]", "\"\\u00e9\\n\\\"\"",
        "\"\xc3\xa9\"", "[true,false,null]", "[-0.0,1e1]"}) {
    const bool trailing = std::string_view(text).back() == ' ';
    EXPECT_EQ(is_json(text), !trailing) << text;
  }
}

TEST(JsonGrammar, RefusesAtTheFirstByteThatIsWrong) {
  for (const char* text : {"{,",        "{1",    "{\"a\",",    "{\"a\"}", "[,",       "[1,]", "[1}",
                           "{\"a\":1]", "01",    "1.e",        "1.}",     "-a",       "+",    ".",
                           "tru1",      "nulll", "\"\n",       "\"\\x",   "\"\\u12g", "'",    "{}{",
                           "[] ",       "true,", "{\"a\":1,}", "]",       "a"}) {
    EXPECT_FALSE(begins_json(text)) << text;
    std::string_view shorter = text;
    shorter.remove_suffix(1);
    EXPECT_TRUE(begins_json(shorter)) << text;
  }
}

TEST(JsonGrammar, IsNotCompleteBeforeTheEnd) {
  for (const char* text : {"", " ", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "[1", "[1,", "\"a",
                           "\"\\", "\"\\u00", "-", "1.", "1e", "1e+", "tru"}) {
    EXPECT_TRUE(begins_json(text)) << text;
    EXPECT_FALSE(is_json(text)) << text;
  }
}

TEST(JsonGrammar, AnObjectIsAskedForOnlyAtTheTop) {
  EXPECT_TRUE(is_json("{\"a\":[1,\"b\"]}", true));
  EXPECT_FALSE(is_json("[1]", true));
  EXPECT_FALSE(is_json("1", true));
}

TEST(JsonGrammar, NestsSoFarAndNoFurther) {
  const std::string open(JsonGrammar::kMaxDepth, '['), close(JsonGrammar::kMaxDepth, ']');
  EXPECT_TRUE(is_json(open + close));
  EXPECT_FALSE(begins_json(open + "["));
  EXPECT_FALSE(begins_json(open + "{"));
  EXPECT_TRUE(begins_json(open + "1"));
}

TEST(JsonGrammar, WhiteSpaceInARowEnds) {
  const std::string spaces(JsonGrammar::kMaxSpaces, ' ');
  EXPECT_TRUE(begins_json("[" + spaces + "1" + spaces + "]"));
  EXPECT_FALSE(begins_json("[" + spaces + " "));
}

bool accepts(const Constraint& constraint, std::string_view text, std::string_view waiting = "") {
  return constraint.accepts(text, waiting);
}

TEST(Constraint, OnlyBeginningsOfChoicesAreAccepted) {
  const char* texts[] = {"yes", "no", "nothing", "\xc3\xa9t\xc3\xa9"};
  Constraint constraint;
  ASSERT_EQ(constraint.set_choices(texts, nullptr), Status::kOk);
  constraint.start();
  EXPECT_TRUE(accepts(constraint, "y"));
  EXPECT_TRUE(accepts(constraint, "yes"));
  EXPECT_FALSE(accepts(constraint, "yes!"));
  EXPECT_FALSE(accepts(constraint, "x"));
  EXPECT_TRUE(accepts(constraint, "", "\xc3"));
  EXPECT_FALSE(accepts(constraint, "y", "\xc3"));
  EXPECT_FALSE(constraint.complete());

  constraint.advance(std::string_view("no"));
  EXPECT_TRUE(constraint.complete());
  EXPECT_FALSE(constraint.closed()) << "\"nothing\" is still possible";
  EXPECT_EQ(constraint.choice(), 1u);
  EXPECT_TRUE(accepts(constraint, "thing"));
  EXPECT_FALSE(accepts(constraint, "es"));
  constraint.advance(std::string_view("thing"));
  EXPECT_TRUE(constraint.closed());
  EXPECT_EQ(constraint.choice(), 2u);

  constraint.start();
  EXPECT_TRUE(accepts(constraint, "yes"));
}

TEST(Constraint, RefusesChoicesThatAreNone) {
  Constraint constraint;
  const char* empty[] = {"a", ""};
  const char* null[] = {nullptr};
  EXPECT_EQ(constraint.set_choices({}, nullptr), Status::kInvalidArgument);
  EXPECT_EQ(constraint.set_choices(empty, nullptr), Status::kInvalidArgument);
  EXPECT_EQ(constraint.set_choices(null, nullptr), Status::kInvalidArgument);
  EXPECT_FALSE(constraint.active());
}

TEST(Constraint, LoadsOnlyWhatItSavedAndNothingOutOfRange) {
  const char* texts[] = {"yes", "no"};
  const char* others[] = {"yes", "now"};
  Constraint constraint, same, other;
  ASSERT_EQ(constraint.set_choices(texts, nullptr), Status::kOk);
  ASSERT_EQ(same.set_choices(texts, nullptr), Status::kOk);
  ASSERT_EQ(other.set_choices(others, nullptr), Status::kOk);
  constraint.advance(std::string_view("n"));
  ASSERT_EQ(same.load(constraint.saved(), nullptr), Status::kOk);
  EXPECT_TRUE(accepts(same, "o"));
  EXPECT_FALSE(accepts(same, "y"));
  EXPECT_EQ(other.load(constraint.saved(), nullptr), Status::kStateMismatch);
  Constraint::Saved wrong = constraint.saved();
  wrong.choice = 2;
  EXPECT_EQ(same.load(wrong, nullptr), Status::kStateCorrupt);
  wrong = constraint.saved();
  wrong.done = 3;
  EXPECT_EQ(same.load(wrong, nullptr), Status::kStateCorrupt);
}

}  // namespace
}  // namespace oxbow
