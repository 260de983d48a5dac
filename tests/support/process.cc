#include "tests/support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "host/testing/paths.h"

extern char** environ;

namespace oxbow::testing {
namespace {

/// Starts a program with these as its standard input, output and errors. `input` is a descriptor, or
/// -1 for none.
pid_t start(const std::string& program, const std::vector<std::string>& arguments, int input,
            const std::string& out, const std::string& err) {
  std::vector<std::string> words;
  const std::string converter = other_converter();
  if (program == "oxbow-convert" && !converter.empty()) {
    words.push_back(converter);
  } else {
    // Under an emulator ("qemu-aarch64 -cpu max") its words come first.
    std::istringstream emulator(testing::emulator());
    for (std::string word; emulator >> word;) words.push_back(word);
    words.push_back(testing::program_dir() + "/" + program);
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (input < 0) {
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&files, input, 0);
  }
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), flags, 0600);
  pid_t pid = 0;
  const int failure = posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) throw std::runtime_error("cannot start " + words[0]);
  return pid;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The most memory a process had so far; `pid` may be "self".
uint64_t peak_of(const std::string& pid) {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

/// Exit code and memory of a program that ends, or has ended.
CommandResult wait_for(pid_t pid) {
  int status = 0;
  rusage usage = {};
  // libFuzzer's timer interrupts: a program that had not ended counted as one that ended well.
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  CommandResult result;
  // A signal is no exit code a test may expect by accident.
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return result;
}

}  // namespace

uint64_t own_peak_bytes() { return peak_of("self"); }

std::string other_converter() {
  const char* path = std::getenv("OXB_TEST_CONVERTER");
  return path == nullptr ? "" : path;
}

CommandResult run_program(const std::string& program, const std::vector<std::string>& arguments) {
  const TemporaryDirectory directory;
  const std::string out = (directory / "out").string(), err = (directory / "err").string();
  CommandResult result = wait_for(start(program, arguments, -1, out, err));
  result.out = file_text(out);
  result.err = file_text(err);
  return result;
}

PipedProgram::PipedProgram(const std::string& program, const std::vector<std::string>& arguments,
                           bool keep_output)
    : keep_output_(keep_output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  input_ = ends[1];
  pid_ =
      start(program, arguments, ends[0], keep_output ? (directory_ / "out").string() : "/dev/null",
            (directory_ / "err").string());
  close(ends[0]);
  // A program that ends early is a failure of its own, not the end of the test.
  std::signal(SIGPIPE, SIG_IGN);
}

PipedProgram::~PipedProgram() {
  if (input_ >= 0) finish();
}

bool PipedProgram::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(input_, text.data(), text.size());
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

uint64_t PipedProgram::peak_bytes() const { return peak_of(std::to_string(pid_)); }

void PipedProgram::interrupt() const { ::kill(pid_, SIGINT); }

std::string PipedProgram::output() const { return file_text((directory_ / "out").string()); }

CommandResult PipedProgram::finish() {
  close(input_);
  input_ = -1;
  CommandResult result = wait_for(pid_);
  if (keep_output_) result.out = file_text((directory_ / "out").string());
  result.err = file_text((directory_ / "err").string());
  return result;
}

}  // namespace oxbow::testing
