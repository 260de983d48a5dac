// oxbow bench: time and memory of a model on this machine.

#include "tools/bench.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "converter/io_file.h"
#include "tools/commands.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

constexpr uint64_t kSeed = 1;
/// Most tokens that are fed to fill the memories before decoding is measured.
constexpr uint64_t kFillTokens = 1 << 16;
/// Of the text a decoder translates while it is measured.
constexpr uint64_t kEncodedTokens = 64;

double median_of(std::span<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What is fed to one entry point, and room for what it gives.
class EntryFeed {
 public:
  EntryFeed(const oxb::Model& model, size_t entry, const std::string& path) : entry_(entry) {
    const oxb::Expected<oxb_entry_info> info = model.entry_info(entry);
    check(info.status(), path);
    info_ = *info;
    for (size_t i = 0; i < info_.input_count; ++i) {
      const oxb::Expected<oxb_input_info> input = model.input_info(entry, i);
      check(input.status(), path);
      if (i > 0 && input->required == 0) continue;
      inputs_.push_back(*input);
      values_.emplace_back(size_t{info_.max_rows} * input->width);
      list_.push_back({input->name, values_.back().data(), 0});
    }
    // A generator's prompt needs its last row only, a text that is encoded all of them.
    const oxb_model_info of = model.info();
    const bool last_only = info_.starts == 0 || of.entry_count > 1;
    output_rows_ = info_.output_rows != 0 ? info_.output_rows : last_only ? 1 : info_.max_rows;
    output_.resize(output_rows_ * info_.output_width);
  }

  const oxb_entry_info& info() const { return info_; }
  bool takes_tokens() const { return inputs_[0].type == OXB_TYPE_I32; }
  std::span<const float> output() const { return output_; }

  /// Random values for the first `rows` of all inputs.
  void fill(RandomTokens& random, size_t rows) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const oxb_input_info& input = inputs_[i];
      for (size_t v = 0; v < rows * input.width; ++v) {
        if (input.type == OXB_TYPE_I32) {
          values_[i][v].token = static_cast<int32_t>(static_cast<uint32_t>(random.next()) %
                                                     std::max(input.limit, 1u));
        } else {
          values_[i][v].number = static_cast<float>(random.next() % 256) / 128.0f - 1.0f;
        }
      }
    }
  }
  void set_token(int32_t token) { values_[0][0].token = token; }

  /// Runs the first `rows` rows; `last`: the output is wanted, as it is at the end of a prompt.
  oxb::Status run(oxb::Session& session, size_t rows, bool last) {
    for (oxb_input& input : list_) input.rows = rows;
    const size_t wanted = info_.output_rows != 0 ? output_rows_
                          : last                 ? std::min(output_rows_, rows)
                                                 : 0;
    return session.run_entry(entry_, list_, wanted == 0 ? nullptr : output_.data(), wanted);
  }

 private:
  union Value {
    int32_t token;
    float number;
  };
  size_t entry_;
  oxb_entry_info info_ = {};
  std::vector<oxb_input_info> inputs_;
  std::vector<std::vector<Value>> values_;
  std::vector<oxb_input> list_;
  size_t output_rows_ = 0;
  std::vector<float> output_;
};

/// One session and the buffers to feed it; everything that grows is allocated here, before
/// measuring.
class Bench {
 public:
  Bench(const oxb::Model& model, std::string path, oxb::Session session)
      : path_(std::move(path)),
        session_(std::move(session)),
        info_(model.info()),
        random_(kSeed, std::max(info_.vocabulary, 1u)) {
    for (size_t e = 0; e < info_.entry_count; ++e) entries_.emplace_back(model, e, path_);
  }

  /// Every run is a text by itself: there is nothing to decode.
  bool only_encodes() const { return entries_.back().info().starts != 0; }

  oxb::Session& session() { return session_; }

  /// Of the encoder where there is one.
  Timing prefill(uint64_t tokens, uint64_t runs) {
    std::vector<double> times;
    Progress progress;
    for (uint64_t run = 0; run <= runs; ++run) {
      session_.reset();
      const Stopwatch time;
      feed(entries_.front(), tokens);
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
    start();
    fill_memories(kFillTokens, tokens);
    std::vector<double> times(tokens);
    Progress progress;
    for (uint64_t i = 0; i < tokens; ++i) {
      if (is_full()) start();
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
    start();
    stream.memories_full = fill_memories(std::max<uint64_t>(tokens, 1000), tokens);
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
        token = input == "greedy" ? argmax(entries_.back().output()) : random_.next();
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
    feed(entries_.front(), prefill_tokens);

    StepTimes prefill, decode;
    session_.reset();
    session_.set_profile(&StepTimes::callback, &prefill);
    feed(entries_.front(), prefill_tokens);
    session_.set_profile(nullptr, nullptr);
    if (!only_encodes()) {
      start();
      fill_memories(kFillTokens, decode_tokens);
      for (uint64_t i = 0; i < decode_tokens; ++i) {
        if (is_full()) start();
        session_.set_profile(&StepTimes::callback, &decode);
        step(random_.next());
        session_.set_profile(nullptr, nullptr);
      }
    }

    // An encoder's steps come before a decoder's, and are in the first list only.
    for (const auto& [index, step] : prefill.steps) {
      decode.steps.try_emplace(index, StepTimes::Step{step.op, step.output, 0});
    }
    std::map<std::string, ProfileRow> ops;
    for (const auto& [index, step] : decode.steps) {
      ProfileRow row;
      row.name = step.op;
      // Steps of another library are told apart from the same op on our kernels.
      const std::string provider = session_.step_provider(index);
      if (provider != "cpu" && provider != "reference") row.name += " " + provider;
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

  void step(int32_t token) {
    EntryFeed& entry = entries_.back();
    if (entry.takes_tokens()) {
      entry.set_token(token);
    } else {
      entry.fill(random_, 1);
    }
    check(entry.run(session_, 1, true), path_);
  }

  bool is_full() const { return info_.capacity != 0 && session_.position() >= info_.capacity; }

  /// An empty stream, behind a text where the model has an encoder.
  void start() {
    session_.reset();
    if (entries_.size() > 1) feed(entries_.front(), kEncodedTokens);
  }

  /// Random tokens in full segments; the output of the last one only, as for a prompt.
  void feed(EntryFeed& entry, uint64_t tokens) {
    while (tokens > 0) {
      const bool streams = entry.info().starts == 0;
      if (streams && is_full()) session_.reset();
      auto count = static_cast<size_t>(std::min<uint64_t>(tokens, entry.info().max_rows));
      if (streams && info_.capacity != 0) {
        count = std::min<size_t>(count, info_.capacity - session_.position());
      }
      entry.fill(random_, count);
      tokens -= count;
      check(entry.run(session_, count, tokens == 0 || !streams), path_);
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
  /// new maximum for a while. False when `limit` tokens were not enough. A stream that has an end
  /// keeps room for `reserve` tokens.
  bool fill_memories(uint64_t limit, uint64_t reserve) {
    constexpr uint64_t kPatience = 256;
    if (info_.capacity != 0) {
      const uint64_t used = session_.position() + reserve;
      if (used < info_.capacity) feed(entries_.back(), info_.capacity - used);
      return false;
    }
    uint64_t most = memory_rows();
    uint64_t last_growth = session_.position();
    const uint64_t start = session_.position();
    while (session_.position() - last_growth < kPatience) {
      if (session_.position() - start >= limit + kPatience) return false;
      feed(entries_.back(), entries_.back().info().max_rows);
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
  std::vector<EntryFeed> entries_;
};

}  // namespace

int bench_command(int argc, char** argv) {
  Args args("oxbow bench",
            "measures time and memory of a model; by default --prefill 128 --decode 128");
  args.positional("model.oxb", "the model file");
  args.option("prefill", "N",
              "time of N tokens fed in segments, as a prompt or a text to encode is");
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
  oxb::Session session = open_session(model, path, common);
  report.backend_bytes = session.backend_bytes();
  Bench bench(model, path, std::move(session));
  report.memory = session_memory(model, path, common);
  if (bench.only_encodes() && (args.has("decode") || stream > 0)) {
    throw InputError(path + ": the model reads each text by itself; measure it with --prefill N");
  }
  if (stream > 0 && report.model.capacity != 0) {
    throw InputError(
        format("%s: the stream ends after %llu tokens; convert with --ring for an "
               "endless one",
               path.c_str(), static_cast<unsigned long long>(report.model.capacity)));
  }
  if (prefill > 0) report.prefill = bench.prefill(prefill, repeat);
  if (decode > 0 && !bench.only_encodes()) report.decode = bench.decode(decode);
  if (stream > 0) report.stream = bench.stream(stream, input);
  if (args.has("profile")) report.profile = bench.profile(prefill > 0 ? prefill : 128, 64);
  report.resident = resident_memory();

  std::fputs((args.has("json") ? bench_json(report) : bench_text(report)).c_str(), stdout);
  if (args.has("html")) convert::write_atomically(*args.text("html"), bench_html(report));
  return convert::kExitGood;
}

}  // namespace oxbow::tools
