#include "converter/offload/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/errors.h"
#include "host/io_file.h"

extern char** environ;

namespace oxbow::convert {

namespace fs = std::filesystem;

WorkFolder::WorkFolder() {
  std::string pattern = (fs::temp_directory_path() / "oxbow-npu-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw InputError("no temporary folder: " + std::string(std::strerror(errno)));
  }
  path_ = pattern;
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void run_program(const std::vector<std::string>& words, const fs::path& log,
                 const std::string& hint) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw InputError(words[0] + " cannot be started: " + std::strerror(error) + "; " + hint);
  }
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::string text = read_file(log.string());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw InputError(words[0] + " failed: " + printable(text.substr(text.rfind('\n') + 1)));
}

}  // namespace oxbow::convert
