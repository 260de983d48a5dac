#include "tools/bench/session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "host/describe.h"
#include "host/state_roles.h"
#include "tools/interrupt.h"

namespace oxbow::tools {
namespace {

constexpr uint64_t kSeed = 1;
/// Most tokens that are fed to fill the memories before decoding is measured.
constexpr uint64_t kFillTokens = 1 << 16;
/// Of the text a decoder translates while it is measured.
constexpr uint64_t kEncodedTokens = 64;
/// Of measuring the start and the end of a stream in turns: most tokens of a turn and its time, most turns, least time
/// of all, and the largest state that is kept for it.
constexpr uint64_t kTurnTokens = 64;
constexpr double kTurnSeconds = 0.25;
constexpr size_t kMostTurns = 101;
constexpr double kTurnsSeconds = 1.0;
constexpr size_t kMostStateBytes = size_t{1} << 30;
/// Profiled prefills, of which the medians count.
constexpr int kProfiledRuns = 3;

double median_of(std::span<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Medians of the blocks' medians and of their fastest tokens: other work on the machine moves the
/// first and leaves the second nearly alone.
Block together(std::span<const Block> blocks) {
  Block sum;
  std::vector<double> medians, fastest, processor;
  for (const Block& block : blocks) {
    sum.tokens += block.tokens;
    processor.push_back(block.processor);
    sum.mean += block.mean * static_cast<double>(block.tokens);
    medians.push_back(block.median);
    fastest.push_back(block.min);
  }
  sum.mean /= static_cast<double>(sum.tokens);
  sum.median = median_of(medians);
  sum.min = median_of(fastest);
  sum.processor = median_of(processor);
  return sum;
}

struct StepTimes {
  struct Step {
    std::string op, output;
    /// Of the run that is going on; of all that have ended.
    uint64_t nanoseconds = 0;
    std::vector<double> seconds;
    /// Of all runs.
    uint64_t calls = 0;

    double median() { return seconds.empty() ? 0.0 : median_of(seconds); }
  };
  std::map<uint32_t, Step> steps;

  void end_run() {
    for (auto& [index, step] : steps) {
      step.seconds.push_back(static_cast<double>(step.nanoseconds) * 1e-9);
      step.nanoseconds = 0;
    }
  }

  static void callback(void* context, uint32_t step, const char* op, const char* output,
                       uint64_t nanoseconds) {
    Step& entry = static_cast<StepTimes*>(context)->steps[step];
    if (entry.op.empty()) {
      entry.op = op;
      entry.output = output;
    }
    entry.nanoseconds += nanoseconds;
    entry.calls += 1;
  }
};

}  // namespace

Bench::Bench(const oxb::Model& model, std::string path, oxb::Session session,
             const BenchLimits& limits)
    : path_(std::move(path)),
      session_(std::move(session)),
      info_(model.info()),
      limits_(limits),
      random_(kSeed, std::max(info_.vocabulary, 1u)) {
  const Description description = describe_file(path_);
  cache_bytes_per_token_ = oxbow::cache_bytes_per_token(description.model);
  for (size_t e = 0; e < info_.entry_count; ++e) {
    entries_.emplace_back(model, description.model, e, path_);
  }
}

void Bench::set_input(const FloatRows& rows) {
  if (!encoder().give(rows)) {
    throw InputError(
        format("%s: --input has %zu rows, expected 1 to %u, of a model that takes no text",
               path_.c_str(), rows.rows, encoder().info().max_rows));
  }
}

void Bench::set_trace(std::unique_ptr<Trace> trace) {
  session_.reset();
  for (EntryFeed& entry : entries_) {
    const size_t rows = entry.is_whole() ? entry.info().max_rows : 1;
    entry.fill(random_, rows);
    trace->learn(session_, entry.info().name, [&] { run(entry, rows, true); });
  }
  session_.reset();
  trace_ = std::move(trace);
}

Timing Bench::prefill(uint64_t tokens) {
  for (uint64_t i = 0; i < limits_.warmup_runs; ++i) {
    session_.reset();
    feed(encoder(), tokens);
  }
  std::vector<double> times, processor;
  Progress progress;
  const Stopwatch whole;
  while (times.size() < limits_.repeat &&
         (times.empty() || (whole.seconds() < limits_.max_seconds && !stop_wanted()))) {
    progress.show("prefill run", times.size(), limits_.repeat);
    session_.reset();
    const double worked = thread_seconds();
    const Stopwatch time;
    feed(encoder(), tokens);
    times.push_back(time.seconds());
    processor.push_back(thread_seconds() - worked);
  }
  Timing timing;
  timing.tokens = encoder().is_whole() ? encoder().info().max_rows : tokens;
  timing.runs = times.size();
  timing.stopped_early = times.size() < limits_.repeat;
  timing.min_seconds = *std::min_element(times.begin(), times.end());
  for (const double seconds : times) timing.times.add(seconds);
  timing.median_seconds = median_of(times);
  timing.processor_seconds = median_of(processor);
  timing.tokens_per_second = static_cast<double>(timing.tokens) / timing.median_seconds;
  return timing;
}

Timing Bench::decode(uint64_t tokens) {
  start();
  Timing timing;
  const bool full = fill_memories(kFillTokens, tokens + limits_.warmup_tokens);
  if (info_.capacity == 0) timing.memories_full = full;
  std::vector<double> times, processor;
  times.reserve(tokens);
  processor.reserve(tokens);
  Progress progress;
  for (uint64_t i = 0; i < limits_.warmup_tokens; ++i) {
    if (is_full()) start();
    step(random_.next());
  }
  const Stopwatch whole;
  while (times.size() < tokens &&
         (times.empty() || (whole.seconds() < limits_.max_seconds && !stop_wanted()))) {
    if (is_full()) start();
    const double worked = thread_seconds();
    const Stopwatch time;
    step(random_.next());
    times.push_back(time.seconds());
    processor.push_back(thread_seconds() - worked);
    progress.show("decode token", times.size(), tokens);
  }
  timing.stopped_early = times.size() < tokens;
  timing.tokens = timing.runs = times.size();
  timing.min_seconds = *std::min_element(times.begin(), times.end());
  for (const double seconds : times) timing.times.add(seconds);
  timing.median_seconds = median_of(times);
  timing.processor_seconds = median_of(processor);
  timing.tokens_per_second = 1.0 / timing.median_seconds;
  return timing;
}

Stream Bench::stream(uint64_t tokens, const std::string& input) {
  Stream stream;
  stream.input = input;
  stream.cache_bytes_per_token = cache_bytes_per_token_;
  stream.seed = kSeed;
  start();
  stream.memories_full = fill_memories(std::max<uint64_t>(tokens, 1000), tokens);
  for (uint64_t i = 0; i < limits_.warmup_tokens; ++i) step(random_.next());
  stream.warmup_tokens = session_.position();

  // A block has the same number of tokens as any other; the last takes the rest.
  const size_t blocks = static_cast<size_t>(std::min<uint64_t>(Stream::kBlocks, tokens));
  const uint64_t block_tokens = tokens / blocks;
  const double block_seconds = limits_.max_seconds / static_cast<double>(blocks);
  // For the median of a block every n-th time is kept; 1,021 is a prime and keeps no rhythm.
  std::vector<double> sample(1021);
  const uint64_t every = block_tokens / sample.size() + 1;

  // Measuring takes code and memory too, which must be there before the first measurement.
  resident_memory();
  heap_bytes();
  median_of(sample);

  Progress progress;
  const std::optional<uint64_t> heap_before = heap_bytes();
  int32_t token = random_.next();
  uint64_t fed = 0;
  const Stopwatch whole;
  for (size_t block = 0; block < blocks && !stream.stopped_early; ++block) {
    const uint64_t end = block + 1 == blocks ? tokens : fed + block_tokens;
    Block& out = stream.blocks[block];
    out.min = 1e30;
    size_t kept = 0;
    const double worked = thread_seconds();
    const Stopwatch block_time;
    // A stream that ends by time has its stretches by time.
    const auto over = [&] {
      return out.tokens > 0 && block + 1 < blocks && block_time.seconds() >= block_seconds;
    };
    while (fed < end && !stream.stopped_early && !over()) {
      const Stopwatch time;
      step(token);
      const double seconds = time.seconds();
      token = input == "greedy" ? argmax(decoder().output()) : random_.next();
      out.tokens += 1;
      out.mean += seconds;
      out.min = std::min(out.min, seconds);
      stream.times.add(seconds);
      if (out.tokens % every == 0 && kept < sample.size()) sample[kept++] = seconds;
      if (++fed == 1000) stream.resident_early = resident_memory();
      stream.stopped_early =
          fed < tokens && (whole.seconds() >= limits_.max_seconds || stop_wanted());
      if (progress.due()) {
        progress.say(
            live_text(stream.warmup_tokens + fed, out.mean / static_cast<double>(out.tokens)));
      }
    }
    out.mean /= static_cast<double>(out.tokens);
    out.resident = resident_memory().bytes;
    out.processor = (thread_seconds() - worked) / static_cast<double>(out.tokens);
    out.median = kept == 0 ? out.mean : median_of(std::span(sample).first(kept));
    stream.block_count = block + 1;
  }
  stream.seconds = whole.seconds();
  stream.tokens = fed;
  stream.resident_end = resident_memory();
  if (fed < 1000) stream.resident_early = stream.resident_end;
  const std::optional<uint64_t> heap_after = heap_bytes();
  if (heap_before && heap_after) {
    stream.heap_growth = static_cast<int64_t>(*heap_after) - static_cast<int64_t>(*heap_before);
  }
  const size_t tenth = std::max<size_t>(stream.block_count / 10, 1);
  stream.first_tenth = together(std::span(stream.blocks).first(tenth));
  stream.last_tenth = together(std::span(stream.blocks).subspan(stream.block_count - tenth, tenth));
  stream.turns = turns(stream.tokens, stream.seconds);
  return stream;
}

std::string Bench::live_text(uint64_t token, double seconds) const {
  std::string text = format(
      "token %s · %.1f µs · state %s · resident %s", grouped_text(token).c_str(), seconds * 1e6,
      bytes_text(session_.state_bytes()).c_str(), bytes_text(resident_memory().bytes).c_str());
  if (cache_bytes_per_token_ != 0) {
    text += " · a full KV cache would be " + bytes_text(cache_bytes_per_token_ * token);
  }
  return text;
}

std::optional<Turns> Bench::turns(uint64_t tokens, double seconds) {
  const size_t bytes = session_.state_bytes();
  if (stop_wanted() || bytes > kMostStateBytes) return std::nullopt;
  Turns out;
  struct Place {
    std::vector<std::byte> state;
    std::vector<double> clock, processor;
  } early, late;
  late.state.resize(bytes);
  out.late_position = session_.position();
  check(session_.save(late.state), path_);
  start();
  fill_memories(std::max<uint64_t>(tokens, 1000), tokens);
  early.state.resize(bytes);
  out.early_position = session_.position();
  check(session_.save(early.state), path_);

  const double per_token = seconds / static_cast<double>(tokens);
  out.tokens = static_cast<uint64_t>(
      std::clamp(kTurnSeconds / std::max(per_token, 1e-9), 1.0, double{kTurnTokens}));
  const double budget = std::min(limits_.max_seconds, std::max(kTurnsSeconds, seconds / 20));
  const auto measure = [&](Place& place) {
    check(session_.load(place.state), path_);
    RandomTokens same(kSeed, std::max(info_.vocabulary, 1u));
    const double worked = thread_seconds();
    const Stopwatch time;
    for (uint64_t i = 0; i < out.tokens; ++i) step(same.next());
    place.clock.push_back(time.seconds());
    place.processor.push_back(thread_seconds() - worked);
  };
  Progress progress;
  const Stopwatch whole;
  do {
    // Who goes first changes, so that neither always finds the caches of the other.
    const bool early_first = out.turns % 2 == 0;
    measure(early_first ? early : late);
    measure(early_first ? late : early);
    progress.show("start and end in turns", ++out.turns, kMostTurns);
  } while (out.turns < kMostTurns && whole.seconds() < budget && !stop_wanted());

  const auto quotient = [&](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> all;
    for (size_t i = 0; i < a.size(); ++i) all.push_back(ratio(b[i], a[i]));
    return median_of(all);
  };
  out.quotient = quotient(early.processor, late.processor);
  out.clock_quotient = quotient(early.clock, late.clock);
  out.early = median_of(early.processor) / static_cast<double>(out.tokens);
  out.late = median_of(late.processor) / static_cast<double>(out.tokens);
  return out;
}

Profile Bench::profile(uint64_t prefill_tokens, uint64_t decode_tokens) {
  const std::unique_ptr<Trace> no_trace = std::move(trace_);
  Profile profile;
  profile.prefill_tokens = encoder().is_whole() ? encoder().info().max_rows : prefill_tokens;
  profile.decode_tokens = decode_tokens;
  session_.reset();
  feed(encoder(), prefill_tokens);

  StepTimes prefill, decode;
  for (int i = 0; i < kProfiledRuns; ++i) {
    session_.reset();
    session_.set_profile(&StepTimes::callback, &prefill);
    feed(encoder(), prefill_tokens);
    session_.set_profile(nullptr, nullptr);
    prefill.end_run();
  }
  if (!only_encodes()) {
    start();
    profile.memories_full = fill_memories(kFillTokens, decode_tokens);
    // A stream that ends keeps room for the tokens: full but for at most a tenth.
    if (info_.capacity != 0) profile.memories_full = decode_tokens * 10 <= info_.capacity;
    // What is translated is shorter than it could be.
    if (translates()) profile.memories_full = false;
    for (uint64_t i = 0; i < decode_tokens; ++i) {
      if (is_full()) start();
      session_.set_profile(&StepTimes::callback, &decode);
      step(random_.next());
      session_.set_profile(nullptr, nullptr);
      decode.end_run();
    }
  }

  // An encoder's steps come before a decoder's, and are in the first list only.
  for (const auto& [index, step] : prefill.steps) {
    decode.steps.try_emplace(index, StepTimes::Step{step.op, step.output, 0, {}, 0});
  }
  std::map<std::string, ProfileRow> ops;
  for (auto& [index, step] : decode.steps) {
    ProfileRow row;
    row.name = step.op;
    // Steps of another library are told apart from the same op on our kernels.
    const std::string provider = session_.step_provider(index);
    if (provider != "cpu" && provider != "reference") row.name += " " + provider;
    row.output = step.output;
    row.steps = 1;
    row.step = index;
    row.other_device = provider == "vulkan" || provider == "npu";
    row.prefill_calls = static_cast<double>(prefill.steps[index].calls) / kProfiledRuns;
    row.prefill_seconds = prefill.steps[index].median();
    row.decode_seconds = step.median();
    ProfileRow& op = ops[row.name];
    op.name = row.name;
    op.steps += 1;
    op.prefill_seconds += row.prefill_seconds;
    op.decode_seconds += row.decode_seconds;
    profile.steps.push_back(row);
  }
  for (const auto& [name, row] : ops) profile.ops.push_back(row);
  std::sort(profile.ops.begin(), profile.ops.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return a.decode_seconds > b.decode_seconds;
  });
  return profile;
}

Timeline Bench::timeline(uint64_t prefill_tokens, uint64_t decode_tokens) {
  const std::unique_ptr<Trace> no_trace = std::move(trace_);
  Timeline timeline;
  session_.reset();
  feed(encoder(), prefill_tokens);
  session_.reset();
  timeline_ = &timeline;
  feed(encoder(), prefill_tokens);
  timeline_ = nullptr;
  if (!only_encodes()) {
    start();
    fill_memories(kFillTokens, decode_tokens);
    for (uint64_t i = 0; i < decode_tokens; ++i) {
      if (is_full()) start();
      timeline_ = &timeline;
      step(random_.next());
      timeline_ = nullptr;
    }
  }
  return timeline;
}

void Bench::run(EntryFeed& entry, size_t rows, bool last) {
  tokens_fed_ += rows;
  const auto feed_it = [&] { return entry.run(session_, rows, last); };
  if (timeline_ != nullptr) {
    check(timeline_->record(session_, entry.info().name, feed_it), path_);
    return;
  }
  const auto index = static_cast<size_t>(&entry - entries_.data());
  check(trace_ == nullptr ? feed_it() : trace_->mark(session_, index, feed_it), path_);
}

void Bench::step(int32_t token) {
  if (decoder().takes_tokens()) {
    decoder().set_token(token);
  } else {
    decoder().fill(random_, 1);
  }
  run(decoder(), 1, true);
}

void Bench::start() {
  session_.reset();
  if (translates()) feed(encoder(), kEncodedTokens);
}

void Bench::feed(EntryFeed& entry, uint64_t tokens) {
  if (entry.is_whole()) {
    entry.fill(random_, entry.info().max_rows);
    run(entry, entry.info().max_rows, true);
    return;
  }
  while (tokens > 0) {
    const bool streams = entry.info().starts == 0;
    if (streams && is_full()) session_.reset();
    auto count = static_cast<size_t>(std::min<uint64_t>(tokens, entry.info().max_rows));
    if (streams && info_.capacity != 0) {
      count = std::min<size_t>(count, info_.capacity - session_.position());
    }
    entry.fill(random_, count);
    tokens -= count;
    run(entry, count, tokens == 0 || !streams);
  }
}

uint64_t Bench::memory_rows() const {
  uint64_t rows = 0;
  for (size_t i = 0; i < session_.tensor_count(); ++i) {
    const oxb::Expected<oxb_tensor_info> tensor = session_.tensor_info(i);
    if (tensor) rows += tensor->rows;
  }
  return rows;
}

/// Feeds segments until the memories have stopped growing, so that every later token costs the
/// same. Compression makes them grow slowly and shrink a little in between, so "stopped" means no
/// new maximum for a while. False when `limit` tokens, or the time, were not enough. A stream that has
/// an end keeps room for `reserve` tokens.
bool Bench::fill_memories(uint64_t limit, uint64_t reserve) {
  constexpr uint64_t kPatience = 256;
  if (info_.capacity != 0) {
    const uint64_t used = session_.position() + reserve;
    if (used < info_.capacity) feed(decoder(), info_.capacity - used);
    return false;
  }
  uint64_t most = memory_rows();
  uint64_t last_growth = session_.position();
  const uint64_t start = session_.position();
  const Stopwatch time;
  while (session_.position() - last_growth < kPatience) {
    if (session_.position() - start >= limit + kPatience) return false;
    if (time.seconds() >= limits_.max_seconds) return false;
    feed(decoder(), decoder().info().max_rows);
    const uint64_t rows = memory_rows();
    if (rows > most) {
      most = rows;
      last_growth = session_.position();
    }
  }
  return true;
}

}  // namespace oxbow::tools
