// oxbow bench: time and memory of a model on this machine.

#include "tools/bench.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

constexpr uint64_t kSeed = 1;
/// Most tokens that are fed to fill the memories before decoding is measured.
constexpr uint64_t kFillTokens = 1 << 16;

double median_of(std::span<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One session and the buffers to feed it; everything that grows is allocated here, before
/// measuring.
class Bench {
 public:
  Bench(const oxb::Model& model, std::string path, oxb::Session session)
      : path_(std::move(path)),
        session_(std::move(session)),
        info_(model.info()),
        random_(kSeed, info_.vocabulary),
        ids_(info_.max_segment),
        logits_(info_.output_width) {}

  oxb::Session& session() { return session_; }

  Timing prefill(uint64_t tokens, uint64_t runs) {
    std::vector<double> times;
    Progress progress;
    for (uint64_t run = 0; run <= runs; ++run) {
      session_.reset();
      const Stopwatch time;
      feed(tokens);
      // The first run also brings the weights into memory.
      if (run > 0) times.push_back(time.seconds());
      progress.show("prefill run", run, runs);
    }
    Timing timing{tokens, runs, median_of(times), *std::min_element(times.begin(), times.end()),
                  0.0};
    timing.tokens_per_second = static_cast<double>(tokens) / timing.median_seconds;
    return timing;
  }

  Timing decode(uint64_t tokens) {
    fill_memories(kFillTokens);
    std::vector<double> times(tokens);
    Progress progress;
    for (uint64_t i = 0; i < tokens; ++i) {
      const Stopwatch time;
      step(random_.next());
      times[i] = time.seconds();
      progress.show("decode token", i, tokens);
    }
    Timing timing{tokens, tokens, median_of(times), *std::min_element(times.begin(), times.end()),
                  0.0};
    timing.tokens_per_second = 1.0 / timing.median_seconds;
    return timing;
  }

  /// One token after another. What it keeps about times has a fixed size, whatever the length.
  Stream stream(uint64_t tokens, const std::string& input) {
    Stream stream;
    stream.tokens = tokens;
    stream.input = input;
    stream.seed = kSeed;
    session_.reset();
    stream.memories_full = fill_memories(std::max<uint64_t>(tokens, 1000));
    for (int i = 0; i < 16; ++i) step(random_.next());
    stream.warmup_tokens = session_.position();

    // A block has the same number of tokens as any other; the last takes the rest.
    stream.block_count = static_cast<size_t>(std::min<uint64_t>(Stream::kBlocks, tokens));
    const uint64_t block_tokens = tokens / stream.block_count;
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
    for (size_t block = 0; block < stream.block_count; ++block) {
      const uint64_t end = block + 1 == stream.block_count ? tokens : fed + block_tokens;
      Block& out = stream.blocks[block];
      out.min = 1e30;
      size_t kept = 0;
      for (; fed < end; ++fed) {
        const Stopwatch time;
        step(token);
        const double seconds = time.seconds();
        token = input == "greedy" ? argmax(logits_) : random_.next();
        out.tokens += 1;
        out.mean += seconds;
        out.min = std::min(out.min, seconds);
        if (out.tokens % every == 0 && kept < sample.size()) sample[kept++] = seconds;
        if (fed + 1 == 1000) stream.resident_early = resident_memory();
        progress.show("stream: token", fed, tokens);
      }
      out.mean /= static_cast<double>(out.tokens);
      out.median = kept == 0 ? out.mean : median_of(std::span(sample).first(kept));
    }
    stream.seconds = whole.seconds();
    stream.resident_end = resident_memory();
    if (tokens < 1000) stream.resident_early = stream.resident_end;
    const std::optional<uint64_t> heap_after = heap_bytes();
    if (heap_before && heap_after) {
      stream.heap_growth = static_cast<int64_t>(*heap_after) - static_cast<int64_t>(*heap_before);
    }
    const size_t tenth = std::max<size_t>(stream.block_count / 10, 1);
    stream.first_tenth = together(std::span(stream.blocks).first(tenth));
    stream.last_tenth =
        together(std::span(stream.blocks).subspan(stream.block_count - tenth, tenth));
    return stream;
  }

  /// Measured apart from the rest, since looking at the clock after each step takes time itself.
  Profile profile(uint64_t prefill_tokens, uint64_t decode_tokens) {
    Profile profile;
    profile.prefill_tokens = prefill_tokens;
    profile.decode_tokens = decode_tokens;
    session_.reset();
    feed(prefill_tokens);

    StepTimes prefill, decode;
    session_.reset();
    session_.set_profile(&StepTimes::callback, &prefill);
    feed(prefill_tokens);
    session_.set_profile(nullptr, nullptr);
    fill_memories(kFillTokens);
    session_.set_profile(&StepTimes::callback, &decode);
    for (uint64_t i = 0; i < decode_tokens; ++i) step(random_.next());
    session_.set_profile(nullptr, nullptr);

    std::map<std::string, ProfileRow> ops;
    for (const auto& [index, step] : decode.steps) {
      ProfileRow row;
      row.name = step.op;
      row.output = step.output;
      row.steps = 1;
      row.prefill_seconds = static_cast<double>(prefill.steps[index].nanoseconds) * 1e-9;
      row.decode_seconds =
          static_cast<double>(step.nanoseconds) * 1e-9 / static_cast<double>(decode_tokens);
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

 private:
  struct StepTimes {
    struct Step {
      std::string op, output;
      uint64_t nanoseconds = 0;
    };
    std::map<uint32_t, Step> steps;

    static void callback(void* context, uint32_t step, const char* op, const char* output,
                         uint64_t nanoseconds) {
      Step& entry = static_cast<StepTimes*>(context)->steps[step];
      if (entry.op.empty()) {
        entry.op = op;
        entry.output = output;
      }
      entry.nanoseconds += nanoseconds;
    }
  };

  /// Medians of the blocks' medians and of their fastest tokens: other work on the machine moves the
  /// first and leaves the second nearly alone.
  static Block together(std::span<const Block> blocks) {
    Block sum;
    std::vector<double> medians, fastest;
    for (const Block& block : blocks) {
      sum.tokens += block.tokens;
      sum.mean += block.mean * static_cast<double>(block.tokens);
      medians.push_back(block.median);
      fastest.push_back(block.min);
    }
    sum.mean /= static_cast<double>(sum.tokens);
    sum.median = median_of(medians);
    sum.min = median_of(fastest);
    return sum;
  }

  void step(int32_t token) { check(session_.run({&token, 1}, logits_), path_); }

  /// Random tokens in full segments; logits of the last one only, as for a prompt.
  void feed(uint64_t tokens) {
    while (tokens > 0) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(tokens, ids_.size()));
      for (size_t i = 0; i < count; ++i) ids_[i] = random_.next();
      tokens -= count;
      check(session_.run(std::span(ids_).first(count),
                         tokens == 0 ? std::span(logits_) : std::span<float>()),
            path_);
    }
  }

  uint64_t memory_rows() const {
    uint64_t rows = 0;
    for (size_t i = 0; i < session_.tensor_count(); ++i) {
      const oxb::Expected<oxb_tensor_info> tensor = session_.tensor_info(i);
      if (tensor) rows += tensor->rows;
    }
    return rows;
  }

  /// Feeds segments until the memories have stopped growing, so that every later token costs the
  /// same. Compression makes them grow slowly and shrink a little in between, so "stopped" means no
  /// new maximum for a while. False when `limit` tokens were not enough.
  bool fill_memories(uint64_t limit) {
    constexpr uint64_t kPatience = 256;
    uint64_t most = memory_rows();
    uint64_t last_growth = session_.position();
    const uint64_t start = session_.position();
    while (session_.position() - last_growth < kPatience) {
      if (session_.position() - start >= limit + kPatience) return false;
      feed(ids_.size());
      const uint64_t rows = memory_rows();
      if (rows > most) {
        most = rows;
        last_growth = session_.position();
      }
    }
    return true;
  }

  std::string path_;
  oxb::Session session_;
  oxb_model_info info_;
  RandomTokens random_;
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
};

}  // namespace

int bench_command(int argc, char** argv) {
  Args args("oxbow bench",
            "measures time and memory of a model; by default --prefill 128 --decode 128");
  args.positional("model.oxb", "the model file");
  args.option("prefill", "N", "time of N tokens fed in segments, as a prompt is");
  args.option("decode", "N", "time of N tokens fed one by one, with full memories");
  args.option("stream", "N", "N tokens one by one over one stream: does time or memory grow?");
  args.option("input", "KIND",
              "tokens of --stream: random ids with a fixed seed, or greedy (default random)");
  args.option("repeat", "N", "runs of --prefill (default 5)");
  args.flag("profile", "time of each op as well");
  args.flag("json", "print JSON");
  args.option("html", "FILE", "write a page with a chart of the stream");
  add_common_options(args);
  args.parse(argc, argv, 2);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return convert::kExitGood;
  }
  const CommonOptions common = read_common_options(args);
  const bool chosen = args.has("prefill") || args.has("decode") || args.has("stream");
  const uint64_t usual = chosen ? 0 : 128;
  const uint64_t prefill = args.integer("prefill", usual, 1, 100'000'000);
  const uint64_t decode = args.integer("decode", usual, 1, 10'000'000);
  const uint64_t stream = args.integer("stream", 0, 1, 1'000'000'000'000);
  const uint64_t repeat = args.integer("repeat", 5, 1, 1000);
  const std::string input = args.choice("input", "random", {"random", "greedy"});

  const std::string path = *args.text("model.oxb");
  if (args.has("html")) convert::refuse_overwriting(*args.text("html"), {path});
  const oxb::Model model = open_model(path);
  Report report;
  report.path = path;
  report.backend = common.backend;
  report.threads = common.session.threads;
  report.model = model.info();
  Bench bench(model, path, open_session(model, path, common));
  report.memory = session_memory(model, path, common);
  if (prefill > 0) report.prefill = bench.prefill(prefill, repeat);
  if (decode > 0) report.decode = bench.decode(decode);
  if (stream > 0) report.stream = bench.stream(stream, input);
  if (args.has("profile")) report.profile = bench.profile(prefill > 0 ? prefill : 128, 64);
  report.resident = resident_memory();

  std::fputs((args.has("json") ? bench_json(report) : bench_text(report)).c_str(), stdout);
  if (args.has("html")) convert::write_atomically(*args.text("html"), bench_html(report));
  return convert::kExitGood;
}

}  // namespace oxbow::tools
