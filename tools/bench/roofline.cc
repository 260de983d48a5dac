#include "tools/bench/roofline.h"

#include <algorithm>

#include "host/number_text.h"
#include "tools/bench/bench.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

constexpr double kProbeSeconds = 2.0;
/// Steps that are shown as text; all are in the JSON.
constexpr size_t kShown = 20;

/// Of all entry points, in one line, as steps of a profile are counted.
std::vector<StepWork> all_work(const schema::ModelT& model) {
  std::vector<StepWork> all;
  for (const auto& entry : model.entry_points) {
    for (const StepWork& work : step_work(model, *entry)) all.push_back(work);
  }
  return all;
}

/// A run of so many tokens, in which a step was called so often and weights were read each time.
void count(RooflineStep& step, const StepWork& work, double tokens, double calls) {
  step.macs = work.macs_per_token * tokens + work.macs_per_run * calls;
  step.int8 = work.int8;
  if (step.macs > 0.0 && calls > 0.0) step.bytes = calls * work.bytes(tokens / calls);
}

void judge(RooflineRun& run, const MachineLimits& limits, bool other_device) {
  RooflineStep& step = run.steps.back();
  run.seconds += step.seconds;
  const std::optional<double> products = step.int8 ? limits.int8_macs : limits.float_macs;
  if (step.macs <= 0.0 || !products || other_device) return;
  const double multiply = step.macs / *products, read = step.bytes / limits.read_bytes;
  step.reading_is_longer = read > multiply;
  step.least_seconds = std::max(multiply, read);
  run.judged_seconds += step.seconds;
  run.least_seconds += *step.least_seconds;
}

std::string line_head(const std::string& name, double seconds, const RooflineRun& run) {
  return format("%-24s%9.1f us%7.1f %%", name.c_str(), seconds * 1e6,
                100.0 * ratio(seconds, run.seconds));
}

std::string run_text(const RooflineRun& run, const std::string& title) {
  std::string out = format("\n%-24s%12s%9s%8s%8s  %-24s%s\n", title.c_str(), "time", "share",
                           "GMAC/s", "GB/s", "of the limit", "output");
  const size_t shown = std::min(run.steps.size(), kShown);
  for (size_t i = 0; i < shown; ++i) {
    const RooflineStep& step = run.steps[i];
    std::string limit;
    if (step.least_seconds) {
      limit = format("%5.1f %% ", 100.0 * *step.least_seconds / step.seconds);
      limit += step.reading_is_longer ? "reading" : step.int8 ? "int8 products" : "float products";
    }
    out += line_head(format("%u %s", step.step, step.op.c_str()), step.seconds, run);
    out += step.macs > 0.0 ? format("%8.1f%8.1f", step.macs / step.seconds * 1e-9,
                                    step.bytes / step.seconds * 1e-9)
                           : format("%16s", "");
    out += format("  %-24s%s\n", limit.c_str(), printable(step.output).c_str());
  }
  if (run.steps.size() > shown) {
    double rest = 0.0;
    for (size_t i = shown; i < run.steps.size(); ++i) rest += run.steps[i].seconds;
    out += line_head(format("%zu more", run.steps.size() - shown), rest, run) + "\n";
  }
  out += line_head("all", run.seconds, run) + "\n";
  if (run.judged_seconds > 0.0) {
    out += format("%-24s%9.1f us\n%-24s%9.1f us\n", "  steps with a limit",
                  run.judged_seconds * 1e6, "  at the limit", run.least_seconds * 1e6);
  }
  return out;
}

nlohmann::json run_json(const RooflineRun& run) {
  nlohmann::json steps = nlohmann::json::array();
  for (const RooflineStep& step : run.steps) {
    nlohmann::json& out = steps.emplace_back(nlohmann::json{
        {"step", step.step}, {"op", step.op}, {"output", step.output}, {"seconds", step.seconds}});
    if (step.macs <= 0.0) continue;
    out["products"] = step.int8 ? "int8" : "float";
    out["macs"] = step.macs;
    out["bytes"] = step.bytes;
    out["macs_per_second"] = step.macs / step.seconds;
    out["bytes_per_second"] = step.bytes / step.seconds;
    if (!step.least_seconds) continue;
    out["least_seconds"] = *step.least_seconds;
    out["of_limit"] = *step.least_seconds / step.seconds;
    out["limited_by"] = step.reading_is_longer ? "reading" : "products";
  }
  return {{"tokens", run.tokens},
          {"seconds", run.seconds},
          {"judged_seconds", run.judged_seconds},
          {"least_seconds", run.least_seconds},
          {"steps", steps}};
}

}  // namespace

Roofline roofline(const schema::ModelT& model, const Profile& profile, uint32_t threads) {
  Roofline out;
  out.prefill.tokens = profile.prefill_tokens;
  out.decode.tokens = 1;
  const std::vector<StepWork> works = all_work(model);
  double read_in_turn = 0.0;
  std::vector<std::pair<RooflineStep, RooflineStep>> counted;
  for (const ProfileRow& row : profile.steps) {
    const StepWork& work = works.at(row.step);
    RooflineStep prefill, decode;
    prefill.step = decode.step = row.step;
    prefill.op = decode.op = row.name;
    prefill.output = decode.output = row.output;
    prefill.seconds = row.prefill_seconds;
    decode.seconds = row.decode_seconds;
    // A prompt begins with empty memories.
    if (!work.needs_full_memories) {
      count(prefill, work, static_cast<double>(profile.prefill_tokens), row.prefill_calls);
    }
    if (profile.memories_full || !work.needs_full_memories) count(decode, work, 1.0, 1.0);
    read_in_turn +=
        row.decode_seconds > 0.0 ? decode.bytes : prefill.bytes / std::max(1.0, row.prefill_calls);
    counted.emplace_back(prefill, decode);
  }
  out.limits = machine_limits(threads, static_cast<uint64_t>(read_in_turn), kProbeSeconds);
  for (size_t i = 0; i < counted.size(); ++i) {
    const bool other = profile.steps[i].other_device;
    for (const auto& [run, step] :
         {std::pair(&out.prefill, &counted[i].first), std::pair(&out.decode, &counted[i].second)}) {
      if (step->seconds <= 0.0) continue;
      run->steps.push_back(*step);
      judge(*run, out.limits, other);
    }
  }
  for (RooflineRun* run : {&out.prefill, &out.decode}) {
    std::stable_sort(
        run->steps.begin(), run->steps.end(),
        [](const RooflineStep& a, const RooflineStep& b) { return a.seconds > b.seconds; });
  }
  return out;
}

std::string roofline_text(const Roofline& roofline) {
  const MachineLimits& limits = roofline.limits;
  std::string out = format("\nroofline         %u thread%s tried for %.1f s: ", limits.threads,
                           limits.threads == 1 ? "" : "s", limits.seconds);
  if (limits.int8_macs && limits.float_macs) {
    out += format("products in registers (%s) %.1f GMAC/s of int8, %.1f of floats; ",
                  limits.instructions, *limits.int8_macs * 1e-9, *limits.float_macs * 1e-9);
  }
  out += format("reading %s %.1f GB/s\n", bytes_text(limits.block_bytes).c_str(),
                limits.read_bytes * 1e-9);
  if (roofline.other_cores)
    out += format("%-17s%s\n", "machine", busy_text(*roofline.other_cores).c_str());
  if (!roofline.prefill.steps.empty()) {
    out += run_text(roofline.prefill, "prefill of " + std::to_string(roofline.prefill.tokens));
  }
  if (!roofline.decode.steps.empty()) out += run_text(roofline.decode, "decode, per token");
  return out;
}

nlohmann::json roofline_json(const Roofline& roofline) {
  const MachineLimits& limits = roofline.limits;
  nlohmann::json probe = {{"instructions", limits.instructions},
                          {"threads", limits.threads},
                          {"seconds", limits.seconds},
                          {"read_bytes_per_second", limits.read_bytes},
                          {"block_bytes", limits.block_bytes}};
  if (limits.int8_macs) probe["int8_macs_per_second"] = *limits.int8_macs;
  if (limits.float_macs) probe["float_macs_per_second"] = *limits.float_macs;
  nlohmann::json out = {{"limits", probe}};
  if (roofline.other_cores) out["other_cores"] = *roofline.other_cores;
  if (!roofline.prefill.steps.empty()) out["prefill"] = run_json(roofline.prefill);
  if (!roofline.decode.steps.empty()) out["decode"] = run_json(roofline.decode);
  return out;
}

}  // namespace oxbow::tools
