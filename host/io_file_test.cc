#include "host/io_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "host/errors.h"
#include "host/testing/files.h"

namespace oxbow {
namespace {

using testing::TemporaryDirectory;

std::string refusal(const std::string& path, const std::string& text) {
  try {
    write_atomically(path, text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(WriteAtomically, ReplacesTheWholeFile) {
  const TemporaryDirectory directory;
  write_atomically(directory / "file", "a long first version");
  write_atomically(directory / "file", "second");
  EXPECT_EQ(read_file(directory / "file"), "second");
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(WriteAtomically, ARefusedCheckLeavesTheOldFile) {
  const TemporaryDirectory directory;
  write_atomically(directory / "file", "old");
  const std::string text = "new";
  const auto part = std::as_bytes(std::span(text));
  std::string seen;
  EXPECT_THROW(write_atomically(directory / "file", std::span(&part, 1),
                                [&](const std::string& temporary) {
                                  seen = read_file(temporary);
                                  throw InputError("no");
                                }),
               InputError);
  EXPECT_EQ(seen, "new");
  EXPECT_EQ(read_file(directory / "file"), "old");
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(WriteAtomically, ALimitOnFileSizeLeavesNothing) {
  const TemporaryDirectory directory;
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = refusal(directory / "file", std::string(10000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(text.find("ulimit -f"), std::string::npos) << text;
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(WriteAtomically, SaysWhatToDo) {
  const TemporaryDirectory directory;
  EXPECT_NE(refusal(directory / "no/such/file", "x").find("create the directory first"),
            std::string::npos);
  EXPECT_NE(refusal("/dev/full", "x").find("not a regular file"), std::string::npos);
  EXPECT_NE(refusal("", "x"), "");
}

TEST(ReadFile, RefusesWhatIsNoFileOrTooLarge) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "sub/file", "12345");
  EXPECT_EQ(read_file(directory / "sub/file"), "12345");
  EXPECT_THROW(read_file(directory / "sub/file", 4), InputError);
  EXPECT_THROW(read_file(directory / "sub"), InputError);
  EXPECT_THROW(read_file(directory / "absent"), InputError);
  testing::write_text(directory / "empty", "");
  EXPECT_EQ(read_file(directory / "empty"), "");
}

}  // namespace
}  // namespace oxbow
