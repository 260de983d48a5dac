// The numbers of oxbow bench for programs: JSON, and a table of steps.

#include <nlohmann/json.hpp>

#include "host/describe.h"
#include "tools/bench/bench.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

/// What is not known is left out.
template <typename T>
void put(nlohmann::json& out, const char* name, const std::optional<T>& value) {
  if (value) out[name] = *value;
}

void put(nlohmann::json& out, const Times& times) {
  for (const auto& [name, share] :
       {std::pair("p50", 0.5), {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}}) {
    out["percentiles"][name] = times.percentile(share);
  }
  out["percentiles"]["max"] = times.largest();
  out["histogram"] = nlohmann::json::array();
  for (size_t i = times.first_bin(); i < times.end_bin(); ++i) {
    const Times::Bin bin = times.bin(i);
    out["histogram"].push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}});
  }
}

nlohmann::json to_json(const Timing& timing) {
  nlohmann::json out = {{"tokens", timing.tokens},
                        {"runs", timing.runs},
                        {"median_seconds", timing.median_seconds},
                        {"min_seconds", timing.min_seconds},
                        {"tokens_per_second", timing.tokens_per_second},
                        {"processor_seconds", timing.processor_seconds},
                        {"stopped_early", timing.stopped_early}};
  put(out, "memories_full", timing.memories_full);
  put(out, timing.times);
  return out;
}

nlohmann::json to_json(const Block& block) {
  return {{"tokens", block.tokens},
          {"median_seconds", block.median},
          {"min_seconds", block.min},
          {"mean_seconds", block.mean},
          {"processor_seconds", block.processor},
          {"resident", block.resident}};
}

nlohmann::json to_json(const Turns& turns) {
  return {{"turns", turns.turns},
          {"tokens", turns.tokens},
          {"early_position", turns.early_position},
          {"late_position", turns.late_position},
          {"early_processor_seconds", turns.early},
          {"late_processor_seconds", turns.late},
          {"late_over_early_processor", turns.quotient},
          {"late_over_early_clock", turns.clock_quotient}};
}

nlohmann::json to_json(const Stream& stream) {
  nlohmann::json out = {{"tokens", stream.tokens},
                        {"input", stream.input},
                        {"seed", stream.seed},
                        {"warmup_tokens", stream.warmup_tokens},
                        {"memories_full", stream.memories_full},
                        {"stopped_early", stream.stopped_early},
                        {"seconds", stream.seconds},
                        {"first_tenth", to_json(stream.first_tenth)},
                        {"last_tenth", to_json(stream.last_tenth)},
                        {"resident_after_1000_tokens", stream.resident_early.bytes},
                        {"resident_at_end", stream.resident_end.bytes},
                        {"anonymous_after_1000_tokens", stream.resident_early.anonymous},
                        {"anonymous_at_end", stream.resident_end.anonymous},
                        {"cache_bytes_per_token", stream.cache_bytes_per_token},
                        {"blocks", nlohmann::json::array()}};
  // Of one stretch the first and the last are the same.
  if (stream.block_count > 1) {
    out["last_over_first_median"] = ratio(stream.last_tenth.median, stream.first_tenth.median);
    out["last_over_first_mean"] = ratio(stream.last_tenth.mean, stream.first_tenth.mean);
    out["last_over_first_fastest"] = ratio(stream.last_tenth.min, stream.first_tenth.min);
  }
  put(out, stream.times);
  if (stream.turns) out["turns"] = to_json(*stream.turns);
  if (stream.heap_growth) out["heap_growth"] = *stream.heap_growth;
  for (size_t i = 0; i < stream.block_count; ++i)
    out["blocks"].push_back(to_json(stream.blocks[i]));
  return out;
}

nlohmann::json to_json(const std::vector<ProfileRow>& rows) {
  nlohmann::json out = nlohmann::json::array();
  for (const ProfileRow& row : rows) {
    nlohmann::json entry = {{"op", row.name},
                            {"steps", row.steps},
                            {"prefill_seconds", row.prefill_seconds},
                            {"decode_seconds", row.decode_seconds}};
    if (!row.output.empty()) entry["output"] = row.output;
    out.push_back(entry);
  }
  return out;
}

nlohmann::json to_json(const Device& device) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, value] : {std::pair("model", &device.model),
                                    {"soc", &device.soc},
                                    {"cpu", &device.cpu},
                                    {"kernel", &device.kernel},
                                    {"machine", &device.machine},
                                    {"android_version", &device.android_version},
                                    {"android_sdk", &device.android_sdk}}) {
    if (!value->empty()) out[name] = *value;
  }
  return out;
}

nlohmann::json to_json(const DeviceState& state) {
  nlohmann::json out = nlohmann::json::object();
  for (const Core& core : state.cores) {
    nlohmann::json entry = {{"core", core.number}};
    if (!core.governor.empty()) entry["governor"] = core.governor;
    put(entry, "khz", core.khz);
    put(entry, "min_khz", core.min_khz);
    put(entry, "max_khz", core.max_khz);
    out["cores"].push_back(entry);
  }
  for (const Temperature& temperature : state.temperatures) {
    out["temperatures"].push_back(
        {{"zone", temperature.zone}, {"type", temperature.type}, {"celsius", temperature.celsius}});
  }
  for (const Battery& battery : state.batteries) {
    nlohmann::json entry = {{"name", battery.name}};
    if (!battery.status.empty()) entry["status"] = battery.status;
    put(entry, "percent", battery.percent);
    put(entry, "current_microamperes", battery.current);
    put(entry, "voltage_microvolts", battery.voltage);
    put(entry, "celsius", battery.celsius);
    out["batteries"].push_back(entry);
  }
  return out;
}

nlohmann::json to_json(const oxb_npu_report& npu) {
  nlohmann::json out = {{"layers", npu.layers},
                        {"device_bytes", npu.device_bytes},
                        {"fast_bytes", npu.fast_bytes},
                        {"host_bytes", npu.host_bytes},
                        {"runs", npu.runs},
                        {"rows", npu.rows},
                        {"seconds", static_cast<double>(npu.nanoseconds) * 1e-9},
                        {"cpu_runs", npu.cpu_runs}};
  if (npu.compared != 0) {
    out["compared"] = npu.compared;
    out["different"] = npu.different;
    out["largest_difference"] = npu.largest_difference;
  }
  if (npu.failed != 0) out["failure"] = npu.failure;
  return out;
}

}  // namespace

nlohmann::json bench_json(const Report& report) {
  nlohmann::json out = {{"format", 1},
                        {"made", report.made},
                        {"model", report.path},
                        {"hash", hash_text(report.model.hash)},
                        {"architecture", report.architecture},
                        {"parameters", report.model.parameters},
                        {"macs_per_token", report.model.macs_per_token},
                        {"file_bytes", report.model.file_bytes},
                        {"weight_bytes", report.model.weight_bytes},
                        {"max_segment", report.model.max_segment},
                        {"backend", report.backend},
                        {"threads", report.threads},
                        {"backend_bytes", report.backend_bytes},
                        {"arena",
                         {{"total", report.memory.arena_bytes},
                          {"states", report.memory.state_bytes},
                          {"activations", report.memory.activation_bytes},
                          {"scratch", report.memory.scratch_bytes},
                          {"session", report.memory.session_bytes}}},
                        {"resident", report.resident.bytes},
                        {"device", to_json(report.device)},
                        {"before", to_json(report.before)},
                        {"after", to_json(report.after)},
                        {"seconds", report.seconds},
                        {"tokens_fed", report.tokens_fed},
                        {"involuntary_switches", report.involuntary_switches}};
  put(out, "other_cores", report.other_cores);
  if (report.cpu_mask != 0) {
    out["cpu_mask"] = format("%llx", static_cast<unsigned long long>(report.cpu_mask));
  }
  put(out, "peak_memory", report.peak_memory);
  if (report.npu) out["npu"] = to_json(*report.npu);
  for (const Energy& energy : energy_between(report.before, report.after)) {
    out["energy"].push_back({{"name", energy.name}, {"joules", energy.joules}});
  }
  if (report.prefill) out["prefill"] = to_json(*report.prefill);
  if (report.decode) out["decode"] = to_json(*report.decode);
  if (report.stream) out["stream"] = to_json(*report.stream);
  if (report.profile) {
    out["profile"] = {{"prefill_tokens", report.profile->prefill_tokens},
                      {"decode_tokens", report.profile->decode_tokens},
                      {"ops", to_json(report.profile->ops)},
                      {"steps", to_json(report.profile->steps)}};
  }
  if (report.roofline) out["roofline"] = roofline_json(*report.roofline);
  return out;
}

std::string profile_csv(const Profile& profile) {
  // Names come from the model file, and a quote inside quotes is written twice.
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
  };
  std::string out = "step,op,output,prefill_seconds,decode_seconds\n";
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfileRow& step = profile.steps[i];
    out += format("%zu,%s,%s,%.9f,%.9f\n", i, quoted(step.name).c_str(),
                  quoted(step.output).c_str(), step.prefill_seconds, step.decode_seconds);
  }
  return out;
}

}  // namespace oxbow::tools
