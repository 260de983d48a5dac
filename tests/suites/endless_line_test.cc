// A line of 1 GiB through every command that reads text: the right answer or one line that says why not,
// in the memory that a short text takes. Each kind of tokenizer gets as much of it as it can take in a few
// seconds; WordPiece, which gives up words, gets all.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "host/testing/paths.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/hub_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
// Where the programs are slow, under sanitizers or an emulator, less must do.
const bool kIsSlow = testing::emulator() != "";
#else
const bool kIsSlow = true;
#endif
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kMoreMemory = 512 * kMiB;
#else
constexpr uint64_t kMoreMemory = 32 * kMiB;
#endif

uint64_t scaled(uint64_t bytes) { return kIsSlow ? bytes / 64 : bytes; }

/// Gives `bytes` of `pattern` and no line end to a program that reads them from its standard input.
CommandResult feed(const Words& words, const std::string& pattern, uint64_t bytes) {
  std::string block;
  while (block.size() < std::min<uint64_t>(kMiB, bytes)) block += pattern;
  PipedProgram program("oxbow", words, /*keep_output=*/false);
  for (uint64_t sent = 0; sent < bytes; sent += block.size()) {
    if (!program.write(block)) break;  // It said no.
  }
  return program.finish();
}

class EndlessLine : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    with_vocabulary(256).write(*directory_ / "words");
    std::ofstream(*directory_ / "words/vocab.txt")
        << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nriver\n##s\n.\n";
    words_ = convert(*directory_ / "words", *directory_ / "words.oxb", {});
    with_vocabulary(256).write(*directory_ / "bytes");
    bytes_ = convert(*directory_ / "bytes", *directory_ / "bytes.oxb", {"--tokenizer", "byte"});
  }
  static void TearDownTestSuite() { delete directory_; }

  /// As much memory as a short text takes, and a little more.
  static void expect_bounded(Words command, const std::string& pattern, uint64_t bytes,
                             int exit_code, const std::string& words) {
    command.insert(command.begin() + 2, {"--file", "-"});
    if (command[0] == "eval") command[2] = "--text";
    const CommandResult little = feed(command, pattern, kMiB / 64);
    const CommandResult result = feed(command, pattern, scaled(bytes));
    EXPECT_EQ(result.exit_code, exit_code) << command[0] << ": " << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    if (exit_code != 0) expect_one_line(result, words);
    EXPECT_LT(result.peak_bytes, little.peak_bytes + kMoreMemory) << command[0];
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string words_, bytes_;
};

TEST_F(EndlessLine, OfOneWordIsOneUnknownToken) {
  expect_bounded({"tokenize", words_}, "abcdefgh", 1024 * kMiB, 0, "3 tokens, ");
  // The same reader; a quarter of it shows that the rest of these commands stands it.
  expect_bounded({"run", words_, "--tokens", "2"}, "abcdefgh", 256 * kMiB, 0, "prompt 3 tokens");
  expect_bounded({"eval", words_}, "abcdefgh", 256 * kMiB, 0, "");
}

TEST_F(EndlessLine, OfBytesIsRunToItsEnd) {
  expect_bounded({"tokenize", bytes_}, "a\xff", 4 * kMiB, 0, "");
  expect_bounded({"run", bytes_, "--tokens", "2"}, "abc ", kMiB / 4, 0, "");
  expect_bounded({"eval", bytes_}, "abc ", kMiB / 4, 0, "");
}

TEST_F(EndlessLine, IsStoodByEveryKindOfTokenizer) {
  struct Kind {
    const char* folder;
    int spaces_code;
    const char* spaces_words;
  };
  // GPT-2 has tokens of many spaces, so that a run of them can be cut nowhere.
  const Kind kinds[] = {
      {"gpt2", 3, "a word of more than 4096 bytes"}, {"llama", 0, ""}, {"t5", 0, ""}};
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.folder);
    make_hub_folder(kind.folder, *directory_ / kind.folder);
    const std::string model =
        convert(*directory_ / kind.folder, *directory_ / (std::string(kind.folder) + ".oxb"), {});
    expect_bounded({"tokenize", model}, "Where does the river end, then? ", 4 * kMiB, 0, "");
    expect_bounded({"tokenize", model}, "a", 2 * kMiB, 0, "");
    expect_bounded({"tokenize", model}, " ", 2 * kMiB, kind.spaces_code, kind.spaces_words);
    expect_bounded({"tokenize", model}, "\xe4\xb8\xad\xff", kMiB, 0, "");
  }
}

}  // namespace
}  // namespace oxbow::testing
