#include "host/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "host/describe.h"
#include "host/errors.h"

namespace oxbow {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
/// Rates of less are noise.
constexpr double kLeastSeconds = 0.5;
/// A stage that a log tells of.
constexpr double kLongSeconds = 2;

}  // namespace

std::string progress_text(uint64_t bytes_done, uint64_t all, double seconds) {
  if (all == 0) return " ...";
  const double share = static_cast<double>(bytes_done) / static_cast<double>(all);
  std::string text = " " + std::to_string(std::lround(std::floor(share * 100))) + " %, " +
                     bytes_text(bytes_done) + " of " + bytes_text(all);
  if (seconds < kLeastSeconds || bytes_done == 0) return text;
  const double rate = static_cast<double>(bytes_done) / seconds;
  const double left = static_cast<double>(all - bytes_done) / rate;
  return text + ", " + bytes_text(static_cast<uint64_t>(rate)) + "/s, " +
         std::to_string(std::lround(std::ceil(left))) + " s left";
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (open_) std::fputs("\r\033[K", stderr);
  end_stage();
}

void ProgressLine::end_stage() {
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  if (terminal_ || stage_.empty() || seconds < kLongSeconds) return;
  std::fprintf(stderr, "%s: %.0f s\n", printable(stage_).c_str(), seconds);
}

void ProgressLine::show(const std::string& stage, uint64_t bytes_done, uint64_t all) {
  const Clock::time_point now = Clock::now();
  const bool is_new = stage != stage_;
  if (is_new) {
    end_stage();
    stage_ = stage;
    started_ = now;
  }
  if (!terminal_) return;
  if (!is_new && now - shown_ < kInterval) return;
  shown_ = now;
  open_ = true;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::fprintf(stderr, "\r\033[K%s%s", printable(stage, 70).c_str(),
               progress_text(bytes_done, all, seconds).c_str());
  std::fflush(stderr);
}

}  // namespace oxbow
