// oxbow bench: time and memory of a model on this machine.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/io_file.h"
#include "host/page.h"
#include "tools/bench/bench.h"
#include "tools/commands.h"
#include "tools/common.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"

namespace oxbow::tools {

void declare_bench(Args& args) {
  args.positional_list("model.oxb", "the model file, or several to measure one after the other");
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
  args.flag("roofline",
            "try for two seconds what this machine gives at most, and show beside it what each "
            "step achieves");
  args.flag("trace", "mark runs and steps in the kernel's trace, for Perfetto; costs time");
  args.option("perfetto", "FILE",
              "write when each step of a few runs began and ended, for Perfetto and about:tracing");
  args.flag("markdown", "print a table with a row for each model, backend and number of threads");
  args.flag("json", "print JSON, with what the device tells about itself");
  args.option("html", "FILE", "write a page with charts of what was measured and of the model");
  args.option("svg", "FILE", "write the chart of the memory over the stream as a picture");
  add_common_options(args);
}

namespace {

/// "a,b" -> {"a", "b"}.
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// One model on one backend with one number of threads.
struct Job {
  Args args;
  CommonOptions common;
};

/// Every model with every backend and number of threads. All are opened once before any is measured.
std::vector<Job> read_jobs(const Args& args) {
  std::vector<Job> jobs;
  for (const std::string& path : args.texts("model.oxb")) {
    for (const std::string& backend : parts_of(args.text("backend", "auto"))) {
      for (const std::string& threads : parts_of(args.text("threads", "1"))) {
        const Args own =
            args.with("model.oxb", path).with("backend", backend).with("threads", threads);
        jobs.push_back({own, read_common_options(own)});
      }
    }
  }
  for (const char* option : {"svg", "profile-csv", "perfetto"}) {
    if (args.has(option) && jobs.size() > 1) {
      throw UsageError(std::string("--") + option +
                       " is for one model, backend and number of threads");
    }
  }
  for (const char* file : {"html", "svg", "profile-csv", "perfetto"}) {
    if (args.has(file)) refuse_overwriting(*args.text(file), args.texts("model.oxb"));
  }
  if (jobs.size() > 1) {
    for (const Job& job : jobs) {
      const std::string path = *job.args.text("model.oxb");
      session_memory(open_model(path, &job.common), path, job.common);
    }
  }
  return jobs;
}

/// The page shows each file once, however often it was measured.
std::string page(const Args& args, const nlohmann::json& made,
                 const std::vector<nlohmann::json>& benches) {
  std::vector<nlohmann::json> models;
  std::vector<std::string> paths;
  for (const std::string& path : args.texts("model.oxb")) {
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) continue;
    paths.push_back(path);
    models.push_back(to_json(describe_file(path)));
    models.back()["path"] = path;
  }
  return to_html(page_data(made, models, benches), paths.front());
}

}  // namespace

int bench_command(const Args& args) {
  const std::vector<Job> jobs = read_jobs(args);
  const nlohmann::json made = made_by(args.program(), args.words());
  const bool as_text = !args.has("json") && !args.has("markdown");
  if (args.has("json") && args.has("markdown")) {
    throw UsageError("--json and --markdown are two forms of the same: give one");
  }
  // What was measured until Ctrl-C is told.
  std::vector<Report> reports;
  for (const Job& job : jobs) {
    reports.push_back(measure(job.args, job.common));
    reports.back().made = made;
    // It never falls: of a later one it would tell about those before.
    if (reports.size() > 1) reports.back().peak_memory.reset();
    if (as_text) {
      std::fputs(((reports.size() > 1 ? "\n" : "") + bench_text(reports.back())).c_str(), stdout);
    }
    if (stop_wanted()) break;
  }
  std::vector<nlohmann::json> benches;
  for (const Report& report : reports) benches.push_back(bench_json(report));
  if (args.has("json")) {
    std::fputs(json_text(jobs.size() == 1 ? benches.front() : page_data(made, {}, benches)).c_str(),
               stdout);
  }
  if (args.has("markdown")) std::fputs(bench_markdown(reports).c_str(), stdout);
  if (args.has("html")) write_atomically(*args.text("html"), page(args, made, benches));
  const Report& first = reports.front();
  if (args.has("svg") && first.stream) {
    write_atomically(*args.text("svg"), bench_svg(*first.stream));
  }
  if (args.has("profile-csv") && first.profile) {
    write_atomically(*args.text("profile-csv"), profile_csv(*first.profile));
  }
  if (args.has("perfetto") && first.timeline) {
    write_atomically(*args.text("perfetto"), first.timeline->json(first.path));
  }
  return stop_wanted() ? kExitInterrupted : kExitGood;
}

}  // namespace oxbow::tools
