#include "converter/formats/sentence_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/errors.h"
#include "host/testing/files.h"

namespace oxbow::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::TemporaryDirectory;

const char* const kModules = R"([
  {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";
const char* const kMean = R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": false,
  "pooling_mode_mean_tokens": true})";

class SentenceFolder : public ::testing::Test {
 protected:
  SentenceFolder() { std::filesystem::create_directory(directory_ / "1_Pooling"); }

  void write(const std::string& name, const std::string& text) {
    testing::write_text(directory_ / name, text);
  }
  SentenceModel read() { return read_sentence_model(directory_.path()).value(); }
  std::string refusal() {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  TemporaryDirectory directory_;
};

TEST_F(SentenceFolder, TellsHowTextsBecomeRows) {
  EXPECT_FALSE(read_sentence_model(directory_.path()).has_value());
  write("modules.json", kModules);
  write("1_Pooling/config.json", kMean);
  write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
  write("config_sentence_transformers.json",
        R"({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"})");
  const SentenceModel model = read();
  EXPECT_EQ(model.transformer, directory_.path());
  EXPECT_TRUE(model.warnings.empty());
  EXPECT_THAT(model.settings(),
              ElementsAre(Pair("embed_default_prompt", "query"), Pair("embed_max_tokens", "256"),
                          Pair("embed_normalise", "true"), Pair("embed_pooling", "mean"),
                          Pair("embed_prompt.query", "query: ")));
}

TEST_F(SentenceFolder, TheModelMayBeInAFolderOfItsOwn) {
  write("modules.json", R"([{"path": "0_Transformer", "type": "x.Transformer"},
                            {"path": "1_Pooling", "type": "x.Pooling"}])");
  write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  const SentenceModel model = read();
  EXPECT_EQ(model.transformer, directory_ / "0_Transformer");
  EXPECT_EQ(model.pooling, "first");
  EXPECT_FALSE(model.normalise);
}

TEST_F(SentenceFolder, WhatCannotBeDoneIsToldAndNotStored) {
  write("modules.json", kModules);
  const std::pair<const char*, const char*> poolings[] = {
      {R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})",
       "pooling by pooling_mode_cls_token, pooling_mode_mean_tokens is not supported"},
      {R"({"pooling_mode_weightedmean_tokens": true})", "pooling_mode_weightedmean_tokens"},
      {R"({})", "pooling by nothing is not supported"}};
  for (const auto& [config, words] : poolings) {
    write("1_Pooling/config.json", config);
    const SentenceModel model = read();
    ASSERT_EQ(model.warnings.size(), 1u);
    EXPECT_THAT(model.warnings[0], HasSubstr(words));
    EXPECT_TRUE(model.settings().empty());
  }
  write("1_Pooling/config.json", kMean);
  write("modules.json", R"([{"path": "1_Pooling", "type": "x.Pooling"},
                            {"path": "2_Dense", "type": "x.Dense"}])");
  ASSERT_EQ(read().warnings.size(), 1u);
  EXPECT_THAT(read().warnings[0], HasSubstr("module x.Dense is not supported"));
  EXPECT_TRUE(read().settings().empty());
}

TEST_F(SentenceFolder, HostileFilesAreRefused) {
  write("modules.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("modules.json is not a list of modules"));
  write("modules.json", R"([{"path": "../../etc", "type": "x.Pooling"}])");
  EXPECT_THAT(refusal(), HasSubstr("leads out of the directory"));
  write("modules.json", kModules);
  EXPECT_THAT(refusal(), HasSubstr("1_Pooling/config.json"));
  write("1_Pooling/config.json", R"({"pooling_mode_cls_token": 1})");
  EXPECT_THAT(refusal(), HasSubstr("pooling_mode_cls_token is not true or false"));
  write("1_Pooling/config.json", kMean);
  write("sentence_bert_config.json", R"({"max_seq_length": -1})");
  EXPECT_THAT(refusal(), HasSubstr("max_seq_length is -1, expected an integer from 1"));
  write("sentence_bert_config.json", "{}");
  write("config_sentence_transformers.json", R"({"prompts": {"query": 3}})");
  EXPECT_THAT(refusal(), HasSubstr("prompt query is no text"));
}

}  // namespace
}  // namespace oxbow::convert
