#pragma once

// A program at a terminal, as a person meets it.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace oxbow::testing {

class TerminalProgram {
 public:
  /// A program of the build, or of the system where it is a path. `variables` are set beside the test's own, "NO_COLOR=1".
  TerminalProgram(const std::string& program, const std::vector<std::string>& arguments,
                  const std::vector<std::string>& variables = {});
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  void type(std::string_view keys);
  /// Waits until the terminal has shown `text` behind what earlier calls waited for; false after half a minute.
  bool wait_for(std::string_view text);
  /// Waits for the end; an exit code, or minus the signal.
  int finish();
  /// All that was shown.
  const std::string& shown() const { return shown_; }

 private:
  bool read_some();

  int terminal_ = -1;
  pid_t pid_ = 0;
  std::string shown_;
  size_t seen_ = 0;
};

}  // namespace oxbow::testing
