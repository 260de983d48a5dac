#include "converter/text/tokenizer/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "converter/text/tokenizer/find.h"
#include "host/errors.h"
#include "host/testing/files.h"

namespace oxbow::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class Settings : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    testing::write_text(directory_ / name, text);
  }
  TokenizerSettings read() { return read_tokenizer_settings(directory_ / ""); }
  std::string refusal() {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(Settings, AFolderWithoutThemHasNone) {
  const TokenizerSettings settings = read();
  EXPECT_TRUE(settings.named.empty());
  EXPECT_TRUE(settings.added.empty());
  EXPECT_TRUE(settings.files.empty());
  EXPECT_TRUE(settings.flag("add_bos_token", true));
}

TEST_F(Settings, NamesAreTextsOrObjects) {
  write("tokenizer_config.json", R"({"bos_token": {"content": "<s>", "lstrip": true},
      "eos_token": "</s>", "pad_token": null, "add_bos_token": false})");
  write("special_tokens_map.json", R"({"eos_token": "<other>", "mask_token": "<mask>"})");
  const TokenizerSettings settings = read();
  EXPECT_THAT(settings.named,
              UnorderedElementsAre(Pair("bos_token", "<s>"), Pair("eos_token", "</s>"),
                                   Pair("mask_token", "<mask>")));
  EXPECT_FALSE(settings.flag("add_bos_token", true));
  EXPECT_THAT(settings.files, ElementsAre("tokenizer_config.json", "special_tokens_map.json"));
}

TEST_F(Settings, AddedTokensAreJoinedByTheirText) {
  write("tokenizer_config.json", R"({"added_tokens_decoder": {
      "7": {"content": "<b>", "special": true, "rstrip": true}, "3": {"content": "x"}},
      "eos_token": "<b>", "additional_special_tokens": ["<c>"]})");
  write("added_tokens.json", R"({"<c>": 5, "y": 9})");
  const TokenizerSettings settings = read();
  ASSERT_EQ(settings.added.size(), 4u);
  EXPECT_EQ(settings.added[0].text, "x");
  EXPECT_TRUE(settings.added[0].normalized);
  EXPECT_FALSE(settings.added[0].special);
  EXPECT_EQ(settings.added[1].text, "<c>");
  EXPECT_EQ(settings.added[1].id, 5u);
  EXPECT_TRUE(settings.added[1].special);
  EXPECT_EQ(settings.added[2].text, "<b>");
  EXPECT_TRUE(settings.added[2].strip_right);
  EXPECT_FALSE(settings.added[2].normalized);
  EXPECT_EQ(settings.added[3].text, "y");
}

TEST_F(Settings, TheDefaultOfSeveralChatsCounts) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "R"},
      {"name": "default", "template": "D"}]})");
  EXPECT_EQ(read().chat_template, "D");
  write("tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(read().chat_template, "one");
  write("tokenizer_config.json", "{}");
  write("chat_template.jinja", "file");
  EXPECT_EQ(read().chat_template, "file");
}

TEST_F(Settings, NonsenseIsRefusedWithItsPlace) {
  write("tokenizer_config.json", "[");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer_config.json is not valid JSON"));
  write("tokenizer_config.json", "[]");
  EXPECT_THAT(refusal(), HasSubstr("is not a JSON object"));
  write("tokenizer_config.json", R"({"bos_token": 5})");
  EXPECT_THAT(refusal(), HasSubstr("bos_token is 5, expected a text or an object with content"));
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"-1": {"content": "x"}}})");
  EXPECT_THAT(refusal(), HasSubstr("expected a token id for its name"));
  write("tokenizer_config.json", R"({"bos_token": {"content": "x", "lstrip": 1}})");
  EXPECT_THAT(refusal(), HasSubstr("bos_token.lstrip is 1, expected true or false"));
  write("tokenizer_config.json", "{}");
  write("added_tokens.json", R"({"x": 4294967296})");
  EXPECT_THAT(refusal(), HasSubstr("x is 4294967296, expected a token id"));
}

/// A BERT's list of words, which says nothing of capitals itself.
class WordList : public Settings {
 protected:
  std::vector<std::string> warnings(const std::string& words) {
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + words);
    const FoundTokenizer found = find_tokenizer(directory_ / "", {"bert", 64});
    EXPECT_TRUE(found.tokenizer);
    return found.warnings;
  }
};

TEST_F(WordList, WithCapitalsThatLowerCaseWouldNeverGiveIsWarnedAbout) {
  const std::vector<std::string> warned = warnings("river\nRiver\n##A\nflow\n");
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_THAT(warned[0], HasSubstr("text is put in lower case, which no file says"));
  EXPECT_THAT(warned[0], HasSubstr("2 tokens have capitals"));
  EXPECT_THAT(warned[0], HasSubstr("do_lower_case"));
}

TEST_F(WordList, WithoutCapitalsIsNotWarnedAbout) {
  EXPECT_TRUE(warnings("river\nflow\n[unused0]\n[XYZ]\n").empty()) << "brackets are no words";
}

TEST_F(WordList, WhoseSettingsSayWhatIsMeantIsNotWarnedAbout) {
  for (const char* value : {"true", "false"}) {
    write("tokenizer_config.json", std::string(R"({"do_lower_case": )") + value + "}");
    EXPECT_TRUE(warnings("river\nRiver\n").empty()) << value;
  }
}

}  // namespace
}  // namespace oxbow::convert
