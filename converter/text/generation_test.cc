#include "converter/text/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/errors.h"
#include "host/testing/files.h"

namespace oxbow::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GenerationConfig : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::string& text) {
    const std::string path = directory_ / "generation_config.json";
    testing::write_text(path, text);
    return read_generation_config(path, 100, generation_);
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  testing::TemporaryDirectory directory_;
  schema::GenerationT generation_;
};

TEST_F(GenerationConfig, SeveralTokensEndAText) {
  read(R"({"bos_token_id": 5, "eos_token_id": [7, 8, 100], "pad_token_id": 9})");
  EXPECT_EQ(generation_.start_token, 5);
  EXPECT_EQ(generation_.end_token, 7);
  EXPECT_THAT(generation_.more_end_tokens, ElementsAre(8));
  EXPECT_EQ(generation_.pad_token, 9);
}

TEST_F(GenerationConfig, ATranslationStartsWithItsOwnToken) {
  read(R"({"bos_token_id": 5, "decoder_start_token_id": 6, "num_beams": 4})");
  EXPECT_EQ(generation_.start_token, 6);
  EXPECT_EQ(generation_.beams, 4u);
}

TEST_F(GenerationConfig, WhisperSaysWhichTokensAreTimes) {
  EXPECT_TRUE(read(R"({"begin_suppress_tokens": [3, 60], "no_timestamps_token_id": 63,
                       "max_initial_timestamp_index": 50})")
                  .empty());
  EXPECT_THAT(generation_.first_forbidden_tokens, ElementsAre(3, 60));
  EXPECT_EQ(generation_.no_timestamps_token, 63);
  EXPECT_EQ(generation_.first_timestamp, 64);
  EXPECT_EQ(generation_.last_initial_timestamp.value(), 50u);
  generation_ = {};
  // No token is left to be a time.
  read(R"({"no_timestamps_token_id": 99})");
  EXPECT_EQ(generation_.first_timestamp, -1);
}

TEST_F(GenerationConfig, WhatItDoesNotSayStaysAsItWas) {
  generation_.start_token = 1;
  generation_.end_token = 2;
  read("{}");
  EXPECT_EQ(generation_.start_token, 1);
  EXPECT_EQ(generation_.end_token, 2);
  EXPECT_FALSE(generation_.temperature.has_value());
  // Numbers without the word to use them are defaults that somebody wrote out.
  read(R"({"temperature": 0.6, "top_p": 0.9})");
  EXPECT_FALSE(generation_.temperature.has_value());
}

TEST_F(GenerationConfig, SamplingIsTakenOver) {
  read(R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 40})");
  EXPECT_FLOAT_EQ(generation_.temperature.value(), 0.6f);
  EXPECT_FLOAT_EQ(generation_.top_p.value(), 0.9f);
  EXPECT_EQ(generation_.top_k.value(), 40u);
  read(R"({"do_sample": false, "temperature": 0.6})");
  EXPECT_EQ(generation_.temperature.value(), 0.0f);
}

TEST_F(GenerationConfig, WhatIsIgnoredIsNamed) {
  EXPECT_THAT(read(R"({"no_repeat_ngram_size": 3, "typical_p": null, "use_cache": true})"),
              ElementsAre("generation_config.json: ignored no_repeat_ngram_size"));
}

TEST_F(GenerationConfig, NonsenseIsRefused) {
  EXPECT_THAT(refusal("["), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(R"({"eos_token_id": "x"})"), HasSubstr("eos_token_id is \"x\", expected"));
  EXPECT_THAT(refusal(R"({"do_sample": 1})"), HasSubstr("expected true or false"));
  EXPECT_THAT(refusal(R"({"top_p": 2})"), HasSubstr("top_p is 2, expected a number"));
  EXPECT_THAT(refusal(R"({"temperature": 1e999})"), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace oxbow::convert
