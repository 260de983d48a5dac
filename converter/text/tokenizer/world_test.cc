#include "converter/text/tokenizer/world.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/text/tokenizer/find.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "runtime/testing/tokenizer.h"

namespace oxbow::convert {
namespace {

using testing::TemporaryDirectory;

/// Byte b is token b + 1; then `more`.
std::string with_bytes(const std::string& more) {
  std::string text;
  for (size_t byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789abcdef";
    text += std::to_string(byte + 1) + " b'\\x" + digits[byte / 16] + digits[byte % 16] + "' 1\n";
  }
  return text + more;
}

class World : public ::testing::Test {
 protected:
  std::unique_ptr<schema::TokenizerT> read(const std::string& text, uint32_t vocabulary = 300) {
    testing::write_text(directory_ / "rwkv_vocab_v1.txt", text);
    return read_world_vocabulary((directory_ / "rwkv_vocab_v1.txt"), vocabulary);
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  }
  TemporaryDirectory directory_;
};

TEST_F(World, TakesTheLongestTokenEachTimeHoweverTheTextComes) {
  const auto table =
      read(with_bytes("257 'ab' 2\n258 'abc' 3\n259 'abcde' 5\n260 \"it's\" 4\n261 '\\n\\n' 2\n262 "
                      "'\xc3\xa9\xc3\xa8' 4\n"
                      "263 '\\u20ac!' 4\n264 b'\\xe2\\x82' 2\n"));
  EXPECT_EQ(table->kind, schema::TokenizerKind::Longest);
  const OwnedTokenizer tokenizer(*table, 300);
  ASSERT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  const std::string text =
      "abcd abcde it's\n\n\n\xc3\xa9\xc3\xa8 \xe2\x82\xac! \xe2\x82" + std::string(1, '\0') + "ab";
  const std::vector<int32_t> expected = {258, 'd' + 1, ' ' + 1,  259, ' ' + 1,
                                         260, 261,     '\n' + 1, 262, ' ' + 1,
                                         263, ' ' + 1, 264,      1,   257};
  for (const size_t chunk : {0u, 1u, 2u, 3u}) {
    EncodeOptions options;
    options.chunk = chunk;
    EXPECT_EQ(encode_all(*tokenizer, text, options), expected) << chunk;
  }
}

TEST_F(World, IsFoundBesideACheckpoint) {
  testing::write_text(directory_ / "rwkv_vocab_v20230424.txt", with_bytes(""));
  const FoundTokenizer found = find_tokenizer((directory_ / ""), {"rwkv7", 300});
  ASSERT_NE(found.tokenizer, nullptr);
  EXPECT_EQ(found.files, (std::vector<std::string>{"rwkv_vocab_v20230424.txt"}));
  EXPECT_EQ(found.tokenizer->roles[0], schema::TokenRole::Control) << "the end of a text";
}

TEST_F(World, RefusesWhatIsNoVocabulary) {
  for (const auto& [line, words] :
       std::vector<std::pair<std::string, std::string>>{{"x 'a' 1", "expected an id"},
                                                        {"300 'a' 1", "id 300 is not below 300"},
                                                        {"257 'ab' 3", "has 2 bytes, expected 3"},
                                                        {"257 '' 0", "has 0 bytes"},
                                                        {"257 ab 2", "not quoted"},
                                                        {"257 'a\\q' 2", "not quoted"},
                                                        {"257 '\\x4' 1", "not quoted"},
                                                        {"257 '\\ud800' 3", "not quoted"},
                                                        {"257 b'\\u0041' 1", "not quoted"},
                                                        {"257 'a\\x00' 2", "a byte of 0"},
                                                        {"1 'ab' 2", "there twice"},
                                                        {"257", "expected an id"}}) {
    EXPECT_NE(refusal(with_bytes(line)).find(words), std::string::npos)
        << line << ": " << refusal(with_bytes(line));
  }
  EXPECT_NE(refusal("1 'a' 1\n").find("no token for the byte 0"), std::string::npos);
}

}  // namespace
}  // namespace oxbow::convert
