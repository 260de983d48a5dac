#pragma once

// When the runs and steps of a session began and how long they took, as a file that Perfetto and Chrome's about:tracing read.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tools/common.h"

namespace oxbow::tools {

class Timeline {
 public:
  /// Does `run`, a run of `session`, and keeps when it and its steps were.
  template <typename Run>
  auto record(oxb::Session& session, const std::string& name, const Run& run) {
    const uint64_t start = clock_.nanoseconds();
    const size_t place = slices_.size();
    slices_.push_back({name, "", kRun, start, 0});
    session.set_profile(&keep_step, this);
    auto result = run();
    session.set_profile(nullptr, nullptr);
    slices_[place].duration = clock_.nanoseconds() - start;
    return result;
  }

  /// Trace events in JSON: a run is a slice, its steps are slices within it.
  std::string json(const std::string& model) const;

 private:
  static constexpr uint32_t kRun = UINT32_MAX;
  struct Slice {
    std::string name, output;
    /// kRun: not a step.
    uint32_t step = kRun;
    /// Nanoseconds.
    uint64_t start = 0, duration = 0;
  };
  static void keep_step(void* timeline, uint32_t step, const char* op, const char* output,
                        uint64_t nanoseconds);

  Stopwatch clock_;
  std::vector<Slice> slices_;
};

}  // namespace oxbow::tools
