#pragma once

// What oxbow bench measures, and how it is shown. The measuring itself is in bench_session.*.

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/oxbow.h"
#include "tools/bench/device.h"
#include "tools/bench/roofline.h"
#include "tools/bench/timeline.h"
#include "tools/bench/times.h"
#include "tools/common.h"

namespace oxbow::tools {

/// Many tokens at once, or one by one; each several times.
struct Timing {
  uint64_t tokens = 0;
  uint64_t runs = 0;
  /// Of all runs: for prefill one run is all its tokens, for decode one run is one token.
  double median_seconds = 0.0;
  double min_seconds = 0.0;
  double tokens_per_second = 0.0;
  /// Median of what the calling thread worked in a run: waiting for a core does not count.
  double processor_seconds = 0.0;
  /// Of all runs.
  Times times;
  /// Fewer runs than asked for: the time was up.
  bool stopped_early = false;
  /// Of decoding an endless stream: whether all memories were full, as they will be for most of it.
  std::optional<bool> memories_full;
};

/// A stretch of a stream. Times are seconds per token.
struct Block {
  uint64_t tokens = 0;
  double median = 0.0;
  double min = 0.0;
  double mean = 0.0;
  /// Mean of what the calling thread worked.
  double processor = 0.0;
  /// Of the process at its end.
  uint64_t resident = 0;
};

/// The start of a stream and its end measured in turns, so that nothing but the position differs. Seconds per token of
/// processor time, medians of all turns; quotients are medians of the turns' own.
struct Turns {
  uint64_t turns = 0, tokens = 0;
  uint64_t early_position = 0, late_position = 0;
  double early = 0.0, late = 0.0;
  double quotient = 0.0, clock_quotient = 0.0;
};

struct Stream {
  static constexpr size_t kBlocks = 200;

  uint64_t tokens = 0;
  /// Fewer tokens than asked for: the time was up.
  bool stopped_early = false;
  /// "random" or "greedy", and the seed of the random ids.
  std::string input;
  uint64_t seed = 0;
  /// Tokens fed before, to fill the memories; whether they were full then.
  uint64_t warmup_tokens = 0;
  bool memories_full = false;
  size_t block_count = 0;
  std::array<Block, kBlocks> blocks = {};
  Block first_tenth, last_tenth;
  /// Of all tokens.
  Times times;
  /// Nothing when the stream was interrupted, or its state is too large to keep twice.
  std::optional<Turns> turns;
  double seconds = 0.0;
  /// What every token would add to a cache of all keys and values; 0: the model has none.
  uint64_t cache_bytes_per_token = 0;
  /// When 1,000 tokens had been fed (or all, when fewer), and at the end.
  ResidentMemory resident_early, resident_end;
  /// What malloc had handed out at the end, less what it had at the start; nothing when unknown.
  std::optional<int64_t> heap_growth;
};

/// Time of all steps that run the same op, or of one step, in both ways of running.
struct ProfileRow {
  std::string name;
  std::string output;
  uint64_t steps = 0;
  /// Per prefill of `Report::prefill_tokens`, and per decoded token: medians of several.
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
  /// Of one step: its place among those of all entry points, how often a prefill calls it, and whether another device than
  /// the processor runs it.
  uint32_t step = 0;
  double prefill_calls = 0.0;
  bool other_device = false;
};

struct Profile {
  uint64_t prefill_tokens = 0;
  uint64_t decode_tokens = 0;
  /// While tokens were decoded, all of them.
  bool memories_full = false;
  /// By op, most expensive first; by step, in order.
  std::vector<ProfileRow> ops, steps;
};

struct Report {
  std::string path, backend;
  /// See host/page.h.
  nlohmann::json made;
  uint32_t threads = 1;
  /// 0: any core.
  uint64_t cpu_mask = 0;
  Device device;
  /// Around prefill, decode and stream, with what was not measured before each; how long that took,
  /// and all tokens fed meanwhile.
  DeviceState before, after;
  double seconds = 0.0;
  uint64_t tokens_fed = 0;
  /// Cores that other programs used meanwhile, on average; how often this one had to give up its own.
  std::optional<double> other_cores;
  uint64_t involuntary_switches = 0;
  /// Of `model` only numbers are kept: its texts end with it.
  std::string architecture;
  oxb_model_info model = OXB_MODEL_INFO_INIT;
  oxb_plan memory = OXB_PLAN_INIT;
  /// Beside the arena, taken by the library behind the backend.
  size_t backend_bytes = 0;
  /// Of all runs of the session: the layers that a plug-in has, and what each side ran.
  std::optional<oxb_npu_report> npu;
  ResidentMemory resident;
  std::optional<uint64_t> peak_memory;
  std::optional<Timing> prefill, decode;
  std::optional<Stream> stream;
  std::optional<Profile> profile;
  std::optional<Roofline> roofline;
  std::optional<Timeline> timeline;
};

/// As the arguments of the command say. `common` are theirs.
Report measure(const Args& args, const CommonOptions& common);

/// 0 when there is nothing to compare with.
inline double ratio(double a, double b) { return b > 0.0 ? a / b : 0.0; }

/// How busy other programs kept the machine.
std::string busy_text(double other_cores);
std::string bench_text(const Report& report);
/// A table with a row for each.
std::string bench_markdown(const std::vector<Report>& reports);
/// docs/json.md tells what the keys mean.
nlohmann::json bench_json(const Report& report);
/// The memory of a stream as a picture of its own.
std::string bench_svg(const Stream& stream);
/// The steps as comma-separated values, a line each.
std::string profile_csv(const Profile& profile);

}  // namespace oxbow::tools
