#pragma once

// Marks in the kernel's trace, which Perfetto and trace-cmd show beside what the cores, the clock
// and the scheduler did: "B|pid|name" begins a section of the writing thread, "E|pid" ends it.

#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tools/bench/device.h"

namespace oxbow::tools {

class Trace {
 public:
  /// Opens the kernel's trace_marker; throws InputError when there is none that can be written.
  explicit Trace(const KernelFiles& files);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The library tells when a step has ended, not which one follows: a first run of each entry, in
  /// which nothing is marked, finds out their order. All memory is taken here.
  template <typename Run>
  void learn(oxb::Session& session, std::string name, const Run& run) {
    Entry entry{begin_text(name), {}};
    session.set_profile(&learn_step, &entry);
    run();
    session.set_profile(nullptr, nullptr);
    add(std::move(entry));
  }

  /// Marks a run of the `index`-th entry that was learned, and each of its steps. Allocates nothing.
  template <typename Run>
  auto mark(oxb::Session& session, size_t index, const Run& run) {
    begin_run(session, index);
    auto result = run();
    end_run(session);
    return result;
  }

 private:
  struct Entry {
    std::string begin;
    /// The mark of each step's beginning, in their order.
    std::vector<std::string> steps;
  };

  static void learn_step(void* entry, uint32_t step, const char* op, const char* output, uint64_t);
  static void mark_step(void* trace, uint32_t step, const char* op, const char* output, uint64_t);
  static std::string begin_text(const std::string& name);
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  void begin_run(oxb::Session& session, size_t index);
  void end_run(oxb::Session& session);
  void write(const std::string& text) const;

  int fd_ = -1;
  std::string end_;
  std::vector<Entry> entries_;
  /// Of the run that is marked now: its entry, and steps that have ended.
  const Entry* entry_ = nullptr;
  size_t done_ = 0;
};

}  // namespace oxbow::tools
