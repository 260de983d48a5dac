#include "host/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/errors.h"
#include "host/testing/files.h"

namespace oxbow {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_json("x.json", text);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("x.json "));
    return error.what();
  }
  return "accepted";
}

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(JsonFile, DepthIsBounded) {
  EXPECT_EQ(refusal(nested(100)), "accepted");
  EXPECT_THAT(refusal(nested(101)), HasSubstr("nested deeper than 100 levels"));
  EXPECT_THAT(refusal(std::string(50'000'000, '[')), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 200; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal(objects), HasSubstr("nested deeper"));
  // Side by side is not deep, and neither is text.
  std::string side = "[";
  for (int i = 0; i < 1000; ++i) side += "[{}],";
  EXPECT_EQ(refusal(side + "0]"), "accepted");
  EXPECT_EQ(refusal("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\\\\\""),
            "accepted");
  // More ends than beginnings are an error of another kind.
  EXPECT_THAT(refusal("[]]]]"), HasSubstr("not valid JSON in UTF-8 near byte 3"));
}

TEST(JsonFile, TheNumberOfValuesIsBounded) {
  const size_t most = size_t{1} << 23;
  std::string text = "[0";
  text.reserve(2 * most);
  while (text.size() < 2 * most) text += ",0";
  EXPECT_THAT(refusal(text + "]"), HasSubstr("has more than 8388608 values"));
  EXPECT_EQ(refusal("\"" + std::string(most + 1, ',') + "\""), "accepted");
}

TEST(JsonFile, WhatIsMalformedIsSaid) {
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("\"\xff\""), HasSubstr("not valid JSON in UTF-8"));
  // What follows it would not be looked at.
  EXPECT_THAT(refusal(std::string("[]\0garbage", 10)), HasSubstr("it has a zero byte"));
  EXPECT_THAT(refusal("1e999"), HasSubstr("a number in it is too large"));
  const testing::TemporaryDirectory directory;
  testing::write_text(directory / "a.json", "[1, 2]");
  EXPECT_EQ(read_json(directory / "a.json"), nlohmann::json({1, 2}));
  EXPECT_THROW(read_json(directory / "a.json", 5), InputError);
}

}  // namespace
}  // namespace oxbow
