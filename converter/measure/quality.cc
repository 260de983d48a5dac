#include "converter/measure/quality.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace oxbow::convert {
namespace {

/// Rows of logits that are put aside, 256 MiB.
constexpr size_t kMostFloats = size_t{64} << 20;

/// What a format may cost where no logits are given.
constexpr double kLeastCosine = 0.995;

void compare_rows(std::span<const float> a, std::span<const float> b, const oxb_entry_info& entry,
                  std::span<const int32_t> rest, bool known, Divergence& divergence) {
  const size_t width = entry.output_width;
  for (size_t row = 0; row * width < a.size(); ++row) {
    const bool next = known && entry.output_rows == 0 && row + 1 < rest.size();
    divergence.add(a.subspan(row * width, width), b.subspan(row * width, width),
                   next ? rest[row + 1] : -1);
  }
}

}  // namespace

std::string formatted(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::map<std::string, std::string> Quality::values() const {
  const std::string output = chooses ? "logits" : "output";
  std::map<std::string, std::string> out = {
      {"tokens", std::to_string(tokens)},
      {"text", text},
      {output + "_cosine", formatted(divergence.cosine(), "%.6f")},
      {output + "_max_abs_difference", formatted(divergence.largest_difference(), "%.4g")},
  };
  if (!chooses) return out;
  const auto add = [&](const std::string& name, const Estimate& estimate, const char* format) {
    out[name] = formatted(estimate.value, format);
    out[name + "_error"] = formatted(estimate.error, format);
  };
  add("mean_kl", divergence.kl(), "%.4g");
  add("same_choice", divergence.same_top(), "%.4f");
  add("rms_delta_p", divergence.rms_delta_p(), "%.5f");
  if (divergence.predicted() > 0) {
    out["perplexity_f32"] = formatted(divergence.judge_perplexity(), "%.4f");
    out["perplexity"] = formatted(divergence.perplexity(), "%.4f");
    add("perplexity_change", divergence.perplexity_change(), "%.5f");
  }
  return out;
}

std::string Quality::complaint(const WeightFormat& format) const {
  if (text == TokenSource().name()) return "";
  const Estimate kl = divergence.kl(), same = divergence.same_top();
  std::string missed;
  // An error is given the benefit of the doubt.
  if (chooses && kl.value - kl.error > format.most_kl) {
    missed = "mean KL " + formatted(kl.value, "%.4f") + ", expected at most " +
             formatted(format.most_kl, "%.2f");
  } else if (chooses && same.value + same.error < format.least_same_top) {
    missed = "same top token " + formatted(same.value * 100, "%.1f") + " %, expected at least " +
             formatted(format.least_same_top * 100, "%.0f") + " %";
  } else if (!chooses && divergence.cosine() < kLeastCosine) {
    missed = "mean cosine " + formatted(divergence.cosine(), "%.4f") + ", expected at least " +
             formatted(kLeastCosine, "%.3f");
  }
  if (missed.empty()) return "";
  return std::string(format.name) + " changes what this model says (" + missed + ", on " + text +
         "): try --calibrate with a text like yours, --activations f32, or --weights with more "
         "bits; oxbow eval --compare measures on more text";
}

Judge::Judge(const std::string& float_file, const TokenSource& source,
             const std::shared_ptr<FloatFile>& store, size_t most_tokens) {
  Runner runner(float_file);
  const oxb_model_info& info = runner.info();
  task_ = info.task;
  random_ = source.is_random();
  text_ = source.name();
  const size_t width = std::max<size_t>(runner.entry(info.entry_count - 1).output_width, 1);
  const size_t room = std::max<size_t>(kMostFloats / width, 2);
  tokens_ = source.take(
      runner, std::min({most_tokens, random_ ? kMostRandomTokens : kMostJudgedTokens, room}));
  std::vector<float> rows;
  feed(
      runner, tokens_, [&] { runner.reset(); },
      [&](size_t entry, std::span<const oxb_input> inputs, std::span<const int32_t>) {
        runner.run(entry, inputs, rows);
        if (entry + 1 != info.entry_count) return;
        const size_t columns = runner.entry(entry).output_width;
        rows_.emplace_back(static_cast<uint32_t>(rows.size() / columns),
                           static_cast<uint32_t>(columns), rows, store);
      });
}

Quality Judge::compare(const std::string& file) const {
  Runner runner(file);
  // In a text the next token can be predicted.
  const bool known = !random_ && task_ == OXB_TASK_GENERATE;
  Quality quality;
  quality.tokens = tokens_.size();
  quality.text = text_;
  // Hidden states are no logits: they choose nothing.
  quality.chooses = task_ != OXB_TASK_ENCODE;
  std::vector<float> rows;
  size_t run = 0;
  feed(
      runner, tokens_, [&] { runner.reset(); },
      [&](size_t entry, std::span<const oxb_input> inputs, std::span<const int32_t> rest) {
        runner.run(entry, inputs, rows);
        if (entry + 1 != runner.info().entry_count) return;
        compare_rows(rows_.at(run++).values(), rows, runner.entry(entry), rest, known,
                     quality.divergence);
      });
  return quality;
}

}  // namespace oxbow::convert
