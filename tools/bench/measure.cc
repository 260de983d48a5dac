// One measurement of oxbow bench: a model, a backend, a number of threads.

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "host/describe.h"
#include "tools/bench/bench.h"
#include "tools/bench/session.h"
#include "tools/common.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"

namespace oxbow::tools {
namespace {

BenchLimits read_limits(const Args& args) {
  BenchLimits limits;
  if (args.has("warmup")) {
    limits.warmup_runs = limits.warmup_tokens = args.integer("warmup", 0, 0, 1'000'000);
  }
  limits.repeat = args.integer("repeat", limits.repeat, 1, 1000);
  limits.max_seconds = args.number("max-seconds", limits.max_seconds, 0.0, 1e30);
  return limits;
}

/// Cores that other programs use from now on.
class OtherPrograms {
 public:
  explicit OtherPrograms(const KernelFiles& files) : files_(files), busy_(busy_seconds(files)) {}
  std::optional<double> cores() const {
    const std::optional<double> busy = busy_seconds(files_);
    if (!busy || !busy_) return std::nullopt;
    const double others = (*busy - *busy_) - (process_seconds() - own_);
    // The kernel counts in hundredths of a second: of a short time more cores than there are.
    return std::clamp(others / std::max(time_.seconds(), 1e-9), 0.0,
                      static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
  }

 private:
  const KernelFiles& files_;
  std::optional<double> busy_;
  double own_ = process_seconds();
  Stopwatch time_;
};

}  // namespace

Report measure(const Args& args, const CommonOptions& common) {
  const bool chosen = args.has("prefill") || args.has("decode") || args.has("stream");
  const uint64_t usual = chosen ? 0 : 128;
  const uint64_t prefill = args.integer("prefill", usual, 1, 100'000'000);
  const uint64_t decode = args.integer("decode", usual, 1, 10'000'000);
  const uint64_t stream = args.integer("stream", 0, 1, 1'000'000'000'000);
  const BenchLimits limits = read_limits(args);
  const std::string input = args.text("input", "random");

  const std::string path = *args.text("model.oxb");
  const KernelFiles files = KernelFiles::of_this_machine();
  const oxb::Model model = open_model(path, &common);
  Report report;
  report.path = path;
  report.backend = common.backend;
  report.threads = common.session.threads;
  report.cpu_mask = common.session.cpu_mask;
  report.model = model.info();
  report.architecture = report.model.architecture;
  oxb::Session session = open_session(model, path, common);
  report.backend_bytes = session.backend_bytes();
  Bench bench(model, path, std::move(session), limits);
  report.memory = session_memory(model, path, common);
  if (model.input_info(0, 0)->type == OXB_TYPE_F32) {
    if (args.has("input")) {
      bench.set_input(read_input(input, *model.input_info(0, 0), read_picture_options(args, path)));
    }
  } else if (input != "random" && input != "greedy") {
    throw UsageError("--input is '" + printable(input) + "', expected random or greedy");
  }
  if (args.has("svg") && stream == 0) throw UsageError("--svg draws a stream: give --stream N");
  if (bench.only_encodes() && (args.has("decode") || stream > 0)) {
    throw InputError(path + ": the model reads each text by itself; measure it with --prefill N");
  }
  if (stream > 0 && report.model.capacity != 0) {
    throw InputError(
        format("%s: the stream ends after %llu tokens; convert with --ring for an "
               "endless one",
               path.c_str(), static_cast<unsigned long long>(report.model.capacity)));
  }
  if (args.has("trace")) bench.set_trace(std::make_unique<Trace>(files));

  report.device = read_device(files);
  report.before = read_device_state(files);
  const uint64_t fed_before = bench.tokens_fed();
  const uint64_t switches_before = involuntary_switches();
  // What was measured until then is told.
  stop_on_interrupt();
  const OtherPrograms others(files);
  const Stopwatch whole;
  if (prefill > 0) report.prefill = bench.prefill(prefill);
  if (decode > 0 && !bench.only_encodes() && !stop_wanted()) report.decode = bench.decode(decode);
  if (stream > 0 && !stop_wanted()) report.stream = bench.stream(stream, input);
  report.seconds = whole.seconds();
  report.tokens_fed = bench.tokens_fed() - fed_before;
  report.involuntary_switches = involuntary_switches() - switches_before;
  report.other_cores = others.cores();
  report.after = read_device_state(files);

  const OtherPrograms others_later(files);
  const bool profiled = args.has("profile") || args.has("profile-csv");
  std::optional<Profile> profile;
  if ((profiled || args.has("roofline")) && !stop_wanted()) {
    profile = bench.profile(prefill > 0 ? prefill : 128, 64);
    if (profiled) report.profile = profile;
  }
  if (args.has("perfetto") && !stop_wanted()) {
    report.timeline = bench.timeline(prefill > 0 ? prefill : 128, 16);
  }
  report_npu(bench.session());
  if (const oxb::Expected<oxb_npu_report> npu = bench.session().npu_report()) report.npu = *npu;
  report.resident = resident_memory();
  report.peak_memory = peak_memory(files);
  // Takes memory of its own, of which nothing is told.
  if (profile && args.has("roofline") && !stop_wanted()) {
    report.roofline = roofline(describe_file(path).model, *profile, report.threads);
    report.roofline->other_cores = others_later.cores();
  }
  return report;
}

}  // namespace oxbow::tools
