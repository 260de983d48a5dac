#include "tests/support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "tests/support/files.h"

extern char** environ;

namespace oxbow::testing {

CommandResult run_program(const std::string& program, const std::vector<std::string>& arguments) {
  // Under an emulator ("qemu-aarch64 -cpu max") its words come first.
  std::vector<std::string> words;
  std::istringstream emulator(OXB_EMULATOR);
  for (std::string word; emulator >> word;) words.push_back(word);
  words.push_back(std::string(OXB_BIN_DIR) + "/" + program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const TemporaryDirectory directory;
  const std::string out = (directory / "out").string(), err = (directory / "err").string();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), flags, 0600);
  pid_t pid = 0;
  const int failure = posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) throw std::runtime_error("cannot start " + words[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  const auto text = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  };
  // A signal is no exit code a test may expect by accident.
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text(out), text(err)};
}

}  // namespace oxbow::testing
