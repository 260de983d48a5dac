// The numbers of oxbow bench as text, and the memory of a stream as a picture.

#include <algorithm>
#include <functional>

#include "host/describe.h"
#include "tools/bench/bench.h"
#include "tools/bench/chart.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

std::string time_text(double seconds) {
  if (seconds >= 1.0) return format("%.3f s", seconds);
  if (seconds >= 1e-3) return format("%.3f ms", seconds * 1e3);
  return format("%.1f us", seconds * 1e6);
}

/// Other programs' share of a core from which on figures of time are doubtful.
constexpr double kBusyCores = 0.1;

double share(double part, double whole) { return whole > 0.0 ? 100.0 * part / whole : 0.0; }

struct Sums {
  double prefill = 0.0, decode = 0.0;
};

Sums sums(const Profile& profile) {
  Sums total;
  for (const ProfileRow& row : profile.ops) {
    total.prefill += row.prefill_seconds;
    total.decode += row.decode_seconds;
  }
  return total;
}

std::string heap_text(const Stream& stream) {
  return stream.heap_growth ? format("%+lld bytes", static_cast<long long>(*stream.heap_growth))
                            : "unknown";
}

/// What the process has, and what it would have with a cache of all keys and values.
Chart memory_chart(const Stream& stream) {
  constexpr double kMiB = 1 << 20;
  Chart chart;
  chart.title = "Memory over the stream";
  chart.unit = "MiB";
  chart.tokens = static_cast<double>(stream.tokens);
  Series ours{"median", "", {}}, cache{"cache", "", {}};
  const auto early = static_cast<double>(stream.resident_early.bytes);
  const auto per_token = static_cast<double>(stream.cache_bytes_per_token);
  double token = 0.0;
  cache.points.emplace_back(0.0, early / kMiB);
  for (size_t i = 0; i < stream.block_count; ++i) {
    token += static_cast<double>(stream.blocks[i].tokens);
    ours.points.emplace_back(token, static_cast<double>(stream.blocks[i].resident) / kMiB);
    cache.points.emplace_back(token, (early + per_token * token) / kMiB);
  }
  ours.label = "Oxbow, the whole process: " + bytes_text(stream.resident_end.bytes);
  cache.label =
      "with a growing KV cache: " +
      bytes_text(stream.resident_early.bytes + stream.cache_bytes_per_token * stream.tokens);
  if (stream.cache_bytes_per_token != 0) chart.series.push_back(std::move(cache));
  chart.series.push_back(std::move(ours));
  return chart;
}

std::string timing_text(const Timing& timing, const char* per) {
  return format("%s per %s (median of %llu, fastest %s, processor time %s), %.1f tokens/s",
                time_text(timing.median_seconds).c_str(), per,
                static_cast<unsigned long long>(timing.runs), time_text(timing.min_seconds).c_str(),
                time_text(timing.processor_seconds).c_str(), timing.tokens_per_second) +
         (timing.memories_full.value_or(true) ? "" : "; the memories were not full yet") +
         (timing.stopped_early ? "; ended early" : "");
}

std::string tenth_text(const Block& block) {
  return format("median %s, mean %s, fastest %s, processor time %s",
                time_text(block.median).c_str(), time_text(block.mean).c_str(),
                time_text(block.min).c_str(), time_text(block.processor).c_str());
}

/// None or one, of a phone's dozens of zones.
std::span<const Temperature> hottest(const DeviceState& state) {
  const auto most = std::max_element(
      state.temperatures.begin(), state.temperatures.end(),
      [](const Temperature& a, const Temperature& b) { return a.celsius < b.celsius; });
  return most == state.temperatures.end() ? std::span<const Temperature>()
                                          : std::span<const Temperature>(&*most, 1);
}

/// How much of what was measured is other programs' doing.
std::string machine_text(const Report& report) {
  const std::string switches =
      grouped_text(report.involuntary_switches) +
      (report.involuntary_switches == 1 ? " involuntary switch" : " involuntary switches");
  if (!report.other_cores) return switches;
  return busy_text(*report.other_cores) + "; " + switches;
}

/// Name and value of every line of the report but the profile.
std::vector<std::pair<std::string, std::string>> lines(const Report& report) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("model", report.path);
  out.emplace_back("architecture",
                   format("%s, %s parameters, %s MACs per token", report.architecture.c_str(),
                          grouped_text(report.model.parameters).c_str(),
                          grouped_text(report.model.macs_per_token).c_str()));
  std::string device = report.device.model;
  for (const std::string& part : {report.device.soc, report.device.cpu, report.device.kernel}) {
    if (!part.empty()) device += (device.empty() ? "" : ", ") + part;
  }
  out.emplace_back("device", device);
  out.emplace_back(
      "run with",
      format("backend %s, %u thread%s", report.backend.c_str(), report.threads,
             report.threads == 1 ? "" : "s") +
          (report.cpu_mask == 0
               ? ""
               : format(", cores %llx", static_cast<unsigned long long>(report.cpu_mask))));
  out.emplace_back("arena", format("%s: states %s, activations %s, scratch %s, session %s",
                                   size_text(report.memory.arena_bytes).c_str(),
                                   bytes_text(report.memory.state_bytes).c_str(),
                                   bytes_text(report.memory.activation_bytes).c_str(),
                                   bytes_text(report.memory.scratch_bytes).c_str(),
                                   bytes_text(report.memory.session_bytes).c_str()));
  if (report.backend_bytes != 0) {
    out.emplace_back("backend memory",
                     size_text(report.backend_bytes) + " beside the arena, taken at creation");
  }
  out.emplace_back("resident memory",
                   size_text(report.resident.bytes) +
                       (report.peak_memory ? ", at most " + size_text(*report.peak_memory) : ""));
  out.emplace_back("machine", machine_text(report));
  if (report.prefill) {
    out.emplace_back(
        format("prefill %llu", static_cast<unsigned long long>(report.prefill->tokens)),
        timing_text(*report.prefill, "run"));
  }
  if (report.decode) {
    out.emplace_back(format("decode %llu", static_cast<unsigned long long>(report.decode->tokens)),
                     timing_text(*report.decode, "token"));
  }
  if (const std::optional<Stream>& stream = report.stream) {
    out.emplace_back(
        "stream",
        format("%s in %s, %s input (seed %llu), after %s to fill the memories%s",
               count_text(stream->tokens, "token").c_str(), time_text(stream->seconds).c_str(),
               stream->input.c_str(), static_cast<unsigned long long>(stream->seed),
               grouped_text(stream->warmup_tokens).c_str(),
               stream->memories_full ? "" : ", which were not full yet") +
            (stream->stopped_early ? "; ended early" : ""));
    // Of one stretch the first and the last are the same, and say nothing of each other.
    const bool several = stream->block_count > 1;
    out.emplace_back(several ? "  first tenth" : "  all of it", tenth_text(stream->first_tenth));
    if (several) out.emplace_back("  last tenth", tenth_text(stream->last_tenth));
    if (several)
      out.emplace_back(
          "  last / first",
          format("median %.3f, mean %.3f, fastest tokens of its blocks %.3f, processor "
                 "time %.3f",
                 ratio(stream->last_tenth.median, stream->first_tenth.median),
                 ratio(stream->last_tenth.mean, stream->first_tenth.mean),
                 ratio(stream->last_tenth.min, stream->first_tenth.min),
                 ratio(stream->last_tenth.processor, stream->first_tenth.processor)));
    if (stream->cache_bytes_per_token != 0) {
      out.emplace_back("  full KV cache",
                       bytes_text(stream->cache_bytes_per_token * stream->tokens) +
                           " would be needed, " +
                           count_text(stream->cache_bytes_per_token, "byte") + " for each token");
    }
    if (const std::optional<Turns>& turns = stream->turns) {
      out.emplace_back(
          "  late / early",
          format("%.3f by processor time, %.3f by the clock: %s at positions %s and %s",
                 turns->quotient, turns->clock_quotient, count_text(turns->turns, "turn").c_str(),
                 grouped_text(turns->early_position).c_str(),
                 grouped_text(turns->late_position).c_str()));
    }
    out.emplace_back("  resident", format("%s after 1,000 tokens, %s at the end",
                                          size_text(stream->resident_early.bytes).c_str(),
                                          size_text(stream->resident_end.bytes).c_str()));
    out.emplace_back("  anonymous", format("%s after 1,000 tokens, %s at the end",
                                           size_text(stream->resident_early.anonymous).c_str(),
                                           size_text(stream->resident_end.anonymous).c_str()));
    out.emplace_back("  heap growth", heap_text(*stream));
  }
  for (const Temperature& hot : hottest(report.after)) {
    out.emplace_back("temperature", format("%.1f degrees Celsius at the end (%s %s)", hot.celsius,
                                           hot.zone.c_str(), hot.type.c_str()));
  }
  for (const Energy& energy : energy_between(report.before, report.after)) {
    out.emplace_back("energy",
                     format("%.3f J in %s by %s, for %s tokens with the warm-up", energy.joules,
                            time_text(report.seconds).c_str(), energy.name.c_str(),
                            grouped_text(report.tokens_fed).c_str()));
  }
  return out;
}

}  // namespace

std::string busy_text(double other_cores) {
  return (other_cores >= kBusyCores ? "this machine was busy: " : "quiet: ") +
         format("%.0f %% of a core for other programs", other_cores * 100);
}

std::string bench_text(const Report& report) {
  std::string out;
  for (const auto& [name, value] : lines(report))
    out += format("%-17s%s\n", name.c_str(), value.c_str());
  if (report.profile) {
    const Sums total = sums(*report.profile);
    out += format(
        "\n%-24s%7s%26s%26s\n", "op", "steps",
        format("prefill of %llu", static_cast<unsigned long long>(report.profile->prefill_tokens))
            .c_str(),
        "decode, per token");
    for (const ProfileRow& op : report.profile->ops) {
      out += format("%-24s%7llu%16s  %5.1f %%%16s  %5.1f %%\n", op.name.c_str(),
                    static_cast<unsigned long long>(op.steps),
                    time_text(op.prefill_seconds).c_str(), share(op.prefill_seconds, total.prefill),
                    time_text(op.decode_seconds).c_str(), share(op.decode_seconds, total.decode));
    }
    out += format("%-31s%16s%25s\n", "all", time_text(total.prefill).c_str(),
                  time_text(total.decode).c_str());
  }
  if (report.roofline) out += roofline_text(*report.roofline);
  return out;
}

std::string bench_markdown(const std::vector<Report>& reports) {
  const auto any = [&](const auto& member) {
    return std::any_of(reports.begin(), reports.end(), [&](const Report& report) {
      return std::invoke(member, report).has_value();
    });
  };
  const bool prefill = any(&Report::prefill), decode = any(&Report::decode),
             stream = any(&Report::stream);
  std::string head = "| model | backend | threads | file | arena |", line = "|---|---|--:|--:|--:|";
  const auto column = [&](const char* title) {
    head += std::string(" ") + title + " |";
    line += "--:|";
  };
  if (prefill) column("prefill, tokens/s");
  if (decode) {
    column("decode, tokens/s");
    column("median of a token");
    column("99 % take at most");
  }
  if (stream) column("late / early");
  std::string out = head + "\n" + line + "\n";
  for (const Report& report : reports) {
    std::string name = report.path.substr(report.path.rfind('/') + 1);
    std::replace(name.begin(), name.end(), '|', '?');
    out += "| " + name + " | " + report.backend + " | " + std::to_string(report.threads) + " | " +
           bytes_text(report.model.file_bytes) + " | " + bytes_text(report.memory.arena_bytes) +
           " |";
    const auto cell = [&](const std::string& text) { out += " " + text + " |"; };
    if (prefill) {
      cell(report.prefill ? format("%.1f", report.prefill->tokens_per_second) : "");
    }
    if (decode) {
      cell(report.decode ? format("%.1f", report.decode->tokens_per_second) : "");
      cell(report.decode ? time_text(report.decode->median_seconds) : "");
      cell(report.decode ? time_text(report.decode->times.percentile(0.99)) : "");
    }
    if (stream) {
      const bool turned = report.stream && report.stream->turns;
      cell(turned ? format("%.3f", report.stream->turns->quotient) : "");
    }
    out += "\n";
  }
  return out;
}

std::string bench_svg(const Stream& stream) { return to_svg(memory_chart(stream)); }

}  // namespace oxbow::tools
