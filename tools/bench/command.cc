// oxbow bench: time and memory of a model on this machine.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "host/io_file.h"
#include "tools/bench/bench.h"
#include "tools/bench/session.h"
#include "tools/commands.h"
#include "tools/common.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"

namespace oxbow::tools {

void declare_bench(Args& args) {
  args.positional("model.oxb", "the model file");
  args.option("prefill", "N",
              "time of N tokens fed in segments, as a prompt or a text to encode is");
  args.option("decode", "N", "time of N tokens fed one by one, with full memories");
  args.option("stream", "N", "N tokens one by one over one stream: does time or memory grow?");
  args.option("input", "KIND",
              "tokens of --stream: random ids with a fixed seed, or greedy (default random); of a "
              "model that takes no text a FILE, as for oxbow run");
  add_picture_options(args);
  args.option(
      "warmup", "N",
      "not measured: runs before --prefill (default 1), tokens before --decode and --stream "
      "(default 16)");
  args.option("repeat", "N", "runs of --prefill (default 5)");
  args.option("max-seconds", "S", "end each measurement after that time, with what it has");
  args.flag("profile", "time of each op as well");
  args.option("profile-csv", "FILE", "write the time of each step as a table");
  args.flag("trace", "mark runs and steps in the kernel's trace, for Perfetto; costs time");
  args.flag("json", "print JSON, with what the device tells about itself");
  args.option("html", "FILE", "write a page with charts of the stream");
  args.option("svg", "FILE", "write the chart of the memory over the stream as a picture");
  add_common_options(args);
}

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

/// "cpu,vulkan": one after the other, each with a report of its own. The words of the command are the same but for that.
int bench_each(const Args& args, const std::string& backends) {
  for (const char* option : {"json", "html", "svg", "profile-csv"}) {
    if (args.has(option)) {
      throw UsageError(std::string("--") + option + " is for one backend; --backend names several");
    }
  }
  for (size_t begin = 0; begin <= backends.size();) {
    const size_t end = std::min(backends.find(',', begin), backends.size());
    const std::string one = backends.substr(begin, end - begin);
    std::vector<std::string> words = args.words();
    for (std::string& word : words) {
      if (word == backends) word = one;
      if (word == "--backend=" + backends) word = "--backend=" + one;
    }
    if (begin != 0) std::puts("");
    Args own(args.program(), args.summary());
    declare_bench(own);
    own.parse(words);
    bench_command(own);
    begin = end + 1;
  }
  return kExitGood;
}

}  // namespace

int bench_command(const Args& args) {
  if (const std::string backends = args.text("backend", "auto");
      backends.find(',') != std::string::npos) {
    return bench_each(args, backends);
  }
  const CommonOptions common = read_common_options(args);
  const bool chosen = args.has("prefill") || args.has("decode") || args.has("stream");
  const uint64_t usual = chosen ? 0 : 128;
  const uint64_t prefill = args.integer("prefill", usual, 1, 100'000'000);
  const uint64_t decode = args.integer("decode", usual, 1, 10'000'000);
  const uint64_t stream = args.integer("stream", 0, 1, 1'000'000'000'000);
  const BenchLimits limits = read_limits(args);
  const std::string input = args.text("input", "random");

  const std::string path = *args.text("model.oxb");
  for (const char* file : {"html", "svg", "profile-csv"}) {
    if (args.has(file)) refuse_overwriting(*args.text(file), {path});
  }
  const KernelFiles files = KernelFiles::of_this_machine();
  const oxb::Model model = open_model(path, &common);
  Report report;
  report.path = path;
  report.backend = common.backend;
  report.threads = common.session.threads;
  report.cpu_mask = common.session.cpu_mask;
  report.model = model.info();
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
  const std::optional<double> busy_before = busy_seconds(files);
  const double own_before = process_seconds();
  const uint64_t switches_before = involuntary_switches();
  // What was measured until then is told.
  stop_on_interrupt();
  const Stopwatch whole;
  if (prefill > 0) report.prefill = bench.prefill(prefill);
  if (decode > 0 && !bench.only_encodes() && !stop_wanted()) report.decode = bench.decode(decode);
  if (stream > 0 && !stop_wanted()) report.stream = bench.stream(stream, input);
  report.seconds = whole.seconds();
  report.tokens_fed = bench.tokens_fed() - fed_before;
  report.involuntary_switches = involuntary_switches() - switches_before;
  if (const std::optional<double> busy = busy_seconds(files); busy && busy_before) {
    const double others = (*busy - *busy_before) - (process_seconds() - own_before);
    // The kernel counts in hundredths of a second: of a short time more cores than there are.
    report.other_cores = std::clamp(others / std::max(report.seconds, 1e-9), 0.0,
                                    static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
  }
  report.after = read_device_state(files);

  if ((args.has("profile") || args.has("profile-csv")) && !stop_wanted()) {
    report.profile = bench.profile(prefill > 0 ? prefill : 128, 64);
  }
  report_npu(bench.session());
  report.resident = resident_memory();
  report.peak_memory = peak_memory(files);

  std::fputs((args.has("json") ? bench_json(report) : bench_text(report)).c_str(), stdout);
  if (args.has("html")) write_atomically(*args.text("html"), bench_html(report));
  if (args.has("svg") && report.stream) {
    write_atomically(*args.text("svg"), bench_svg(*report.stream));
  }
  if (args.has("profile-csv") && report.profile) {
    write_atomically(*args.text("profile-csv"), profile_csv(*report.profile));
  }
  return stop_wanted() ? kExitInterrupted : kExitGood;
}

}  // namespace oxbow::tools
