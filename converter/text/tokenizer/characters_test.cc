#include "converter/text/tokenizer/characters.h"

#include <gtest/gtest.h>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

class Characters : public ::testing::Test {
 protected:
  std::unique_ptr<schema::TokenizerT> read(const std::string& json, uint32_t vocabulary) {
    return read_characters("vocab.json", nlohmann::json::parse(json), vocabulary);
  }
  std::string refusal(const std::string& json, uint32_t vocabulary) {
    try {
      read(json, vocabulary);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  }
};

TEST_F(Characters, ReadsCharactersOfEveryLength) {
  const auto tokenizer = read(
      "[\"a\", \"\xc3\xa9\", \"\xe2\x82\xac\", \"\xf0\x9f\x90\x82\", \"\\u0000\", \"\\n\"]", 6);
  EXPECT_EQ(tokenizer->kind, schema::TokenizerKind::Char);
  EXPECT_EQ(tokenizer->code_points, (std::vector<uint32_t>{'a', 0xe9, 0x20ac, 0x1f402, 0, '\n'}));
}

TEST_F(Characters, RefusesWhatIsNotOneCharacterEach) {
  EXPECT_NE(refusal(R"(["ab"])", 1).find("entry 0 is \"ab\""), std::string::npos);
  EXPECT_NE(refusal(R"(["a", ""])", 2).find("entry 1"), std::string::npos);
  EXPECT_NE(refusal(R"(["a", 5])", 2).find("entry 1 is 5"), std::string::npos);
  EXPECT_NE(refusal(R"(["a", "b", "a"])", 3).find("entries 0 and 2 are the same"),
            std::string::npos);
  EXPECT_NE(refusal(R"(["a"])", 2).find("has 1 entries, expected an array of 2"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"a": 0})", 1).find("not a JSON array"), std::string::npos);
}

TEST_F(Characters, BytesNeed256Tokens) {
  EXPECT_EQ(byte_tokenizer(256)->kind, schema::TokenizerKind::Byte);
  EXPECT_THROW(byte_tokenizer(255), InputError);
}

}  // namespace
}  // namespace oxbow::convert
