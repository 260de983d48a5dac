#include "host/io_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/errors.h"
#include "host/temporary_file.h"
#include "host/testing/files.h"
#include "runtime/base/hash.h"

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

TEST(WriteAtomically, ANameMayBeAsLongAsTheFileSystemAllows) {
  const TemporaryDirectory directory;
  const std::string name(255, 'n');
  write_atomically(directory / name, "x");
  EXPECT_EQ(read_file(directory / name), "x");
  EXPECT_NE(refusal(directory / (name + "n"), "x"), "");
}

TEST(WriteAtomically, WhatAKilledProcessLeftIsRemovedTheNextTime) {
  const TemporaryDirectory directory;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  char prefix[40];
  std::snprintf(prefix, sizeof(prefix), ".oxbow-%016llx-",
                static_cast<unsigned long long>(hash_bytes("file", 4)));
  const auto leave = [&](pid_t process) {
    testing::write_text(directory / (prefix + std::to_string(process)), "half");
  };
  leave(dead);
  leave(::getppid());  // alive, so perhaps still at work
  write_atomically(directory / "other", "x");
  EXPECT_EQ(directory.file_count(), 3u) << "those of another target are not ours";
  write_atomically(directory / "file", "x");
  EXPECT_EQ(directory.file_count(), 3u);
  EXPECT_FALSE(file_exists(directory / (prefix + std::to_string(dead))));
}

TEST(TemporaryFile, SeveralForOneTargetDoNotMeet) {
  const TemporaryDirectory directory;
  const std::string target = directory / "file";
  TemporaryFile first(target), second(target);
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::string one = "one", two = "two";
  second.write_at(2, bytes(two));
  first.write_at(0, bytes(one));
  first.grow_to(2);
  std::string back(3, ' ');
  first.read_at(0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, "one");
  EXPECT_THROW(first.read_at(1, std::as_writable_bytes(std::span(back))), InputError);
  second.keep();
  EXPECT_EQ(read_file(target), std::string("\0\0two", 5));
  first.keep();
  EXPECT_EQ(read_file(target), "one");
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(ReadFile, APipeIsRefusedAndNotWaitedFor) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_file(directory / "pipe"), InputError);
  EXPECT_THROW(read_file("/dev/zero"), InputError);
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
