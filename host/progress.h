#pragma once

// What a program is doing, on standard error: on a terminal one line that changes, elsewhere a line for each stage that
// took long enough to be asked about.

#include <chrono>
#include <cstdint>
#include <string>

namespace oxbow {

class ProgressLine {
 public:
  ProgressLine();
  /// Leaves no line behind on a terminal.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `all` is 0 where nobody knows. Called often; shown ten times a second.
  void show(const std::string& stage, uint64_t bytes_done, uint64_t all);

 private:
  void end_stage();

  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool open_ = false;
  std::string stage_;
  Clock::time_point started_, shown_;
};

/// " 43 %, 1.2 GiB of 2.8 GiB, 310 MiB/s, 5 s left".
std::string progress_text(uint64_t bytes_done, uint64_t all, double seconds);

}  // namespace oxbow
