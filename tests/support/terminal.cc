#include "tests/support/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "host/testing/paths.h"

extern char** environ;

namespace oxbow::testing {

TerminalProgram::TerminalProgram(const std::string& program,
                                 const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& variables) {
  terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0) {
    throw std::runtime_error("no terminal");
  }
  const winsize size = {24, 80, 0, 0};
  ::ioctl(terminal_, TIOCSWINSZ, &size);
  const std::string name = ::ptsname(terminal_);
  std::vector<std::string> words;
  if (program.starts_with('/')) {
    words.push_back(program);
  } else {
    std::istringstream emulator(testing::emulator());
    for (std::string word; emulator >> word;) words.push_back(word);
    words.push_back(program_dir() + "/" + program);
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> all = variables;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : all) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // The first terminal a session opens is the one whose keys send it signals.
  for (const int fd : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&files, fd, name.c_str(), O_RDWR, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const int failure = ::posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) throw std::runtime_error("cannot start " + words[0]);
}

TerminalProgram::~TerminalProgram() {
  if (pid_ != 0) finish();
  ::close(terminal_);
}

void TerminalProgram::type(std::string_view keys) {
  if (::write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) {
    throw std::runtime_error("the terminal takes no keys");
  }
}

bool TerminalProgram::read_some() {
  pollfd waiting = {terminal_, POLLIN, 0};
  if (::poll(&waiting, 1, 200) <= 0) return true;
  char room[4096];
  const ssize_t count = ::read(terminal_, room, sizeof(room));
  if (count <= 0) return false;
  shown_.append(room, static_cast<size_t>(count));
  return true;
}

bool TerminalProgram::wait_for(std::string_view text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    if (const size_t place = shown_.find(text, seen_); place != std::string::npos) {
      seen_ = place + text.size();
      return true;
    }
    if (!read_some() || std::chrono::steady_clock::now() > end) return false;
  }
}

int TerminalProgram::finish() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    read_some();
    if (std::chrono::steady_clock::now() > end) ::kill(pid_, SIGKILL);
  }
  pid_ = 0;
  while (read_some() && shown_.size() < (size_t{1} << 26)) {
    pollfd waiting = {terminal_, POLLIN, 0};
    if (::poll(&waiting, 1, 0) <= 0) break;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace oxbow::testing
