#pragma once

// What the subcommands share: their options, opening a model and a session with them, measuring
// memory and time, and printing numbers.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "host/args.h"
#include "host/errors.h"
#include "runtime/api/oxbow.hpp"

namespace oxbow::tools {

/// --threads, --backend and --memory.
struct CommonOptions {
  oxb::SessionOptions session;
  std::string backend;
  /// Of --backend npu:NAME.
  std::shared_ptr<oxb::Npu> npu;
  /// Bytes a session may have.
  uint64_t memory_limit = UINT64_MAX;
};

void add_common_options(Args& args);
CommonOptions read_common_options(const Args& args);

/// Throws InputError with the words of a status that is not ok, after "`what`: ".
void check(const oxb::Status& status, const std::string& what);

/// Opening plans a session with the options of `planned`, which need not be planned again then.
oxb::Model open_model(const std::string& path, const CommonOptions* planned = nullptr);
/// What a session needs. Refuses with InputError when that is more than the limit.
oxb_plan session_memory(const oxb::Model& model, const std::string& path,
                        const CommonOptions& options);
/// Refuses like session_memory().
oxb::Session open_session(const oxb::Model& model, const std::string& path,
                          const CommonOptions& options);

/// Tells on stderr what an accelerator did, and in shadow mode how it differs; nothing for other backends.
void report_npu(const oxb::Session& session);

/// What this process has in physical memory; zeros when the system does not tell. No allocation.
struct ResidentMemory {
  uint64_t bytes = 0;
  /// The part that is no file: heap, stacks, arenas. The rest is code and mapped weights, which the
  /// system brings in when they are first touched and may drop again.
  uint64_t anonymous = 0;
};
ResidentMemory resident_memory();
/// Bytes handed out by malloc now; nothing when the C library does not tell. Allocates nothing.
std::optional<uint64_t> heap_bytes();

/// Processor time of the calling thread, and of all threads of this process, in seconds.
double thread_seconds();
double process_seconds();
/// How often a thread of this process had to leave its core to another program.
uint64_t involuntary_switches();

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  uint64_t nanoseconds() const {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now() - start_)
                                     .count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// "43 s", "12 min", "3.2 h".
std::string duration_text(double seconds);

/// One line on a terminal that is overwritten, with the rate and the time that is left; nothing when stderr is no terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// At most ten times a second. `total` is 0 when it is not known, as of a pipe; there is no rate then.
  void show(const char* what, uint64_t done, uint64_t total);
  /// The same with words of one's own, which need not be made unless they are due.
  bool due() const { return terminal_ && since_.seconds() >= next_; }
  void say(const std::string& text);

 private:
  void clear();

  bool terminal_ = false;
  bool shown_ = false;
  Stopwatch since_;
  double next_ = 0.0;
};

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...);

/// The smallest id with the largest value.
int32_t argmax(std::span<const float> logits);

/// Pseudo-random ids below `vocabulary`, the same on every machine (splitmix64).
class RandomTokens {
 public:
  RandomTokens(uint64_t seed, uint32_t vocabulary) : state_(seed), vocabulary_(vocabulary) {}
  int32_t next();

 private:
  uint64_t state_;
  uint32_t vocabulary_;
};

}  // namespace oxbow::tools
