#include "host/summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>

#include "host/args.h"
#include "host/divergence.h"

namespace oxbow {
namespace {

constexpr size_t kShownWeights = 5;

std::string row(const std::string& left, const std::string& right) {
  return left + std::string(left.size() < 22 ? 22 - left.size() : 1, ' ') + right + "\n";
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f %%", share * 100);
  return text;
}

uint64_t checkpoint_bytes(const Description& d) {
  return parse_integer(find_value(d.model.metadata->sizes, "checkpoint_bytes")).value_or(0);
}

struct StoredWeights {
  size_t count = 0;
  uint64_t bytes = 0;
};

std::map<std::string, StoredWeights> weights_by_type(const schema::ModelT& model) {
  std::map<std::string, StoredWeights> types;
  for (const auto& tensor : model.tensors) {
    if (tensor->kind != schema::TensorKind::Weight) continue;
    StoredWeights& stored = types[schema::EnumNameDataType(tensor->type)];
    ++stored.count;
    stored.bytes += tensor->bytes;
  }
  return types;
}

}  // namespace

std::string summary_table(const Description& d) {
  const schema::MetadataT& metadata = *d.model.metadata;
  const auto quality = [&](const std::string& key) { return find_value(metadata.quality, key); };
  std::string out = row("architecture", metadata.architecture);
  out += row("task", task_text(d.model.task));
  for (const auto& entry : d.model.entry_points) out += row("entry", entry_text(d.model, *entry));
  out += row("weights, activations", find_value(metadata.settings, "weights") + ", " +
                                         find_value(metadata.settings, "activations"));
  if (const std::string done = find_value(metadata.settings, "transform"); !done.empty()) {
    out += row("rows and weights", done);
  }
  out += row("parameters", grouped_text(metadata.parameters));
  out += row("MACs per token", grouped_text(metadata.macs_per_token));
  if (checkpoint_bytes(d) != 0) {
    out += row("checkpoint size",
               grouped_text(checkpoint_bytes(d)) + "  (" + bytes_text(checkpoint_bytes(d)) + ")");
  }
  out += row("file size", grouped_text(d.file_bytes) + "  (" + bytes_text(d.file_bytes) +
                              ", weights " + bytes_text(d.weight_bytes) + ")");
  for (const auto& [type, stored] : weights_by_type(d.model)) {
    out += row("  " + type, grouped_text(stored.bytes) + "  (" + std::to_string(stored.count) +
                                (stored.count == 1 ? " weight)" : " weights)"));
  }
  out += row("arena", grouped_text(d.memory.arena_bytes) + "  (" +
                          bytes_text(d.memory.arena_bytes) + ", one session)");
  out += row("  session", grouped_text(d.memory.session_bytes));
  out += row("  states", grouped_text(d.memory.state_bytes));
  out += row("  activations", grouped_text(d.memory.activation_bytes));
  out += row("  scratch", grouped_text(d.memory.scratch_bytes));
  if (!d.worst_weights.empty()) {
    out +=
        row("worst weights", "relative RMS error of " + find_value(metadata.settings, "weights"));
  }
  // With --budget there are all of them, for reports.
  const size_t shown = std::min(d.worst_weights.size(), kShownWeights);
  for (const WeightError& weight : std::span(d.worst_weights).first(shown)) {
    out += row("  " + percent(weight.error), weight.name);
  }
  for (const std::string output : {"logits", "output"}) {
    if (quality(output + "_cosine").empty()) continue;
    out += row("quality", "against f32, " + quality("tokens") + " tokens, " + quality("text"));
    out += row("  " + output + " cosine", quality(output + "_cosine"));
    out += row("  max abs difference", quality(output + "_max_abs_difference"));
  }
  if (!quality("mean_kl").empty()) {
    const auto with_error = [&](const std::string& key, double factor, const char* format) {
      return estimate_text({parse_number(quality(key)).value_or(0),
                            parse_number(quality(key + "_error")).value_or(0)},
                           format, factor);
    };
    out += row("  mean KL", with_error("mean_kl", 1, "%.5f") + " nats");
    out += row("  same top token", with_error("same_choice", 100, "%.2f") + " %");
    out += row("  RMS change of p", with_error("rms_delta_p", 100, "%.3f") + " %");
    if (!quality("perplexity").empty()) {
      out += row("  perplexity", quality("perplexity") + " (f32: " + quality("perplexity_f32") +
                                     "), " + with_error("perplexity_change", 100, "%+.2f") + " %");
    }
  }
  return out;
}

nlohmann::json summary_json(const Description& d, const std::vector<std::string>& warnings,
                            const std::vector<std::string>& notes) {
  const nlohmann::json all = to_json(d);
  nlohmann::json out;
  for (const char* key : {"architecture", "parameters", "macs_per_token", "max_segment", "task",
                          "capacity", "settings", "arena", "source_hash", "converter"}) {
    out[key] = all[key];
  }
  out["bytes_before"] = checkpoint_bytes(d);
  out["bytes_after"] = d.file_bytes;
  out["weight_bytes"] = d.weight_bytes;
  out["worst_weights"] = all["weight_errors"];
  out["quality"] = all["quality"];
  out["warnings"] = warnings;
  out["notes"] = notes;
  return out;
}

}  // namespace oxbow
