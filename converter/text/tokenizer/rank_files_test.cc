#include "converter/text/tokenizer/rank_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/text/tokenizer/find.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "runtime/testing/tokenizer.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

std::string base64(const std::string& bytes) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += at + i > bytes.size() ? '=' : digits[bits >> (18 - 6 * i) & 63];
    }
  }
  return out;
}

/// All bytes, then a few longer ones.
std::vector<std::string> tokens() {
  std::vector<std::string> out;
  for (int byte = 0; byte < 256; ++byte) out.emplace_back(1, static_cast<char>(byte));
  for (const char* more : {"he", "ll", "hell", "o w", "lo", "hello", " w"}) out.emplace_back(more);
  return out;
}

json tekken() {
  json file = {{"config",
                {{"pattern", R"(\p{L}+| ?\p{L}+|\s+|[^\s\p{L}]+)"},
                 {"default_vocab_size", 267},
                 {"default_num_special_tokens", 4}}},
               {"special_tokens", json::array({{{"rank", 1}, {"token_str", "<s>"}}})}};
  const std::vector<std::string> list = tokens();
  for (size_t i = 0; i < list.size(); ++i) {
    file["vocab"].push_back({{"rank", i}, {"token_bytes", base64(list[i])}});
  }
  return file;
}

std::string refusal(const json& file) {
  try {
    // As it is read: numbers that are written here have signs.
    read_tekken("tekken.json", json::parse(file.dump()), 300);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Tekken, JoinsWhatMakesATokenTheEarliestFirst) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "tekken.json", tekken().dump());
  const FoundTokenizer found = find_tokenizer(directory / "", {"", 300});
  ASSERT_NE(found.tokenizer, nullptr);
  EXPECT_EQ(found.tokenizer->before, (std::vector<uint32_t>{1}));
  const OwnedTokenizer tokenizer(*found.tokenizer, 300);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  // "hello" is a word that is a token; in "hellx" he and ll join, then hell.
  EXPECT_EQ(encode_all(*tokenizer, "hello hellx<s><SPECIAL_2>"),
            (std::vector<int32_t>{4 + 261, 4 + ' ', 4 + 258, 4 + 'x', 1, 2}));
  EXPECT_EQ(decode_all(*tokenizer, {4 + 261, 4 + 262}), "hello w");
}

TEST(Tekken, RefusesWhatIsNoVocabulary) {
  json file = tekken();
  file["config"]["default_vocab_size"] = 500;
  EXPECT_NE(refusal(file).find("at most the 300 of the model"), std::string::npos);
  file = tekken();
  file["vocab"][3]["rank"] = 4;
  EXPECT_NE(refusal(file).find("vocab[3] is not base64 and its place"), std::string::npos);
  file = tekken();
  file["vocab"][3]["token_bytes"] = "*";
  EXPECT_NE(refusal(file).find("vocab[3]"), std::string::npos);
  file = tekken();
  file["vocab"][3]["token_bytes"] = file["vocab"][2]["token_bytes"];
  EXPECT_NE(refusal(file).find("is as another is"), std::string::npos);
  file = tekken();
  file["vocab"][3]["token_bytes"] = "";
  EXPECT_NE(refusal(file).find("has 0 bytes"), std::string::npos);
  file = tekken();
  file["special_tokens"][0]["rank"] = 9;
  EXPECT_NE(refusal(file).find("expected numbers below 4"), std::string::npos);
  file = tekken();
  file["config"].erase("pattern");
  EXPECT_NE(refusal(file).find("config.pattern is missing"), std::string::npos);
  file = tekken();
  file["config"]["pattern"] = "(?<=a)b";
  EXPECT_NE(refusal(file), "nothing was refused");
}

std::string lines(size_t count) {
  std::vector<std::string> list = tokens();
  // Texts that no merge leads to, so that the list has as many tokens as one that is known.
  for (size_t i = 0; list.size() < count; ++i) list.push_back("~" + std::to_string(i) + "~");
  std::string out;
  for (size_t i = 0; i < list.size(); ++i) out += base64(list[i]) + " " + std::to_string(i) + "\n";
  return out;
}

TEST(Tiktoken, IsToldByItsNumberOfTokens) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "some.tiktoken", lines(50256));
  const FoundTokenizer found = find_tokenizer(directory / "", {"", 50257});
  ASSERT_NE(found.tokenizer, nullptr);
  const OwnedTokenizer tokenizer(*found.tokenizer, 50257);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  EXPECT_EQ(encode_all(*tokenizer, "hello<|endoftext|>"), (std::vector<int32_t>{261, 50256}));
}

TEST(Tiktoken, ALineMayStandForNothing) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "multilingual.tiktoken", lines(50256) + "= 50256\n");
  const FoundTokenizer found = find_tokenizer(directory / "", {"", 51865});
  ASSERT_NE(found.tokenizer, nullptr);
  const OwnedTokenizer tokenizer(*found.tokenizer, 51865);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  EXPECT_EQ(encode_all(*tokenizer, "hello"), (std::vector<int32_t>{261}));
  EXPECT_EQ(decode_all(*tokenizer, {261, 50256, 261}), "hellohello");
}

TEST(Tiktoken, QwensTextIsComposedFirst) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "qwen.tiktoken", lines(151643));
  const FoundTokenizer found = find_tokenizer(directory / "", {"", 151936});
  ASSERT_NE(found.tokenizer, nullptr);
  const OwnedTokenizer tokenizer(*found.tokenizer, 151936);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  EXPECT_EQ(decode_all(*tokenizer, encode_all(*tokenizer, "e\u0301")), "\u00e9");
}

TEST(Tiktoken, RefusesListsThatAreNotKnownAndLinesThatAreNone) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      read_tiktoken("x.tiktoken", text, {}, 1000);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_NE(refused(lines(300)).find("a list of 300 tokens is none that is known"),
            std::string::npos);
  EXPECT_NE(refused("QQ== 1\nQQ==\n").find("line 2 is not base64 and a number"), std::string::npos);
  EXPECT_NE(refused("QQ== 1\n*** 2\n").find("line 2"), std::string::npos);
  EXPECT_NE(refused("QQ== 1\nQg== 1\n").find("token 1 is there twice"), std::string::npos);
  EXPECT_NE(refused("QQ== 99999\n").find("below the 1000"), std::string::npos);
  EXPECT_NE(refused("QQ== 99999999999\n").find("line 1"), std::string::npos);
  EXPECT_FALSE(is_tiktoken("\x0a\x0e\x0a\x05<unk>"));
  EXPECT_FALSE(is_tiktoken(""));
  EXPECT_TRUE(is_tiktoken("IQ== 0\n"));
}

}  // namespace
}  // namespace oxbow::convert
