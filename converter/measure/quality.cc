#include "converter/measure/quality.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace oxbow::convert {
namespace {

constexpr size_t kMostTokens = 256;

/// Natural logarithm of the sum of exponentials.
double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

struct Sums {
  double cosine = 0, divergence = 0, largest = 0, float_bits = 0, bits = 0;
  size_t rows = 0, same_choice = 0, predicted = 0;

  /// `next` is the token that follows in the text, or negative.
  void add(std::span<const float> a, std::span<const float> b, int32_t next) {
    double ab = 0, aa = 0, bb = 0, kl = 0;
    const double za = log_sum_exp(a), zb = log_sum_exp(b);
    for (size_t i = 0; i < a.size(); ++i) {
      ab += double{a[i]} * b[i];
      aa += double{a[i]} * a[i];
      bb += double{b[i]} * b[i];
      kl += std::exp(a[i] - za) * ((a[i] - za) - (b[i] - zb));
      largest = std::max(largest, std::fabs(double{a[i]} - b[i]));
    }
    cosine += aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : (aa == bb ? 1.0 : 0.0);
    divergence += kl;
    same_choice += std::max_element(a.begin(), a.end()) - a.begin() ==
                   std::max_element(b.begin(), b.end()) - b.begin();
    ++rows;
    if (next < 0) return;
    const auto target = static_cast<size_t>(next);
    float_bits += (za - a[target]) / std::log(2.0);
    bits += (zb - b[target]) / std::log(2.0);
    ++predicted;
  }
};

std::string number_text(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

void compare(std::span<const float> a, std::span<const float> b, const oxb_entry_info& entry,
             std::span<const int32_t> rest, bool known, Sums& sums) {
  const size_t width = entry.output_width;
  for (size_t row = 0; row * width < a.size(); ++row) {
    const bool next = known && entry.output_rows == 0 && row + 1 < rest.size();
    sums.add(a.subspan(row * width, width), b.subspan(row * width, width),
             next ? rest[row + 1] : -1);
  }
}

}  // namespace

std::map<std::string, std::string> measure_quality(std::span<const std::byte> float_file,
                                                   std::span<const std::byte> file,
                                                   const TokenSource& source) {
  Runner reference(float_file), converted(file);
  const oxb_model_info& info = reference.info();
  const std::vector<int32_t> tokens = source.take(converted, kMostTokens);
  // In a text the next token can be predicted.
  const bool known = !source.is_random() && info.task == OXB_TASK_GENERATE;
  Sums sums;
  std::vector<float> a, b;
  feed(
      reference, tokens,
      [&] {
        reference.reset();
        converted.reset();
      },
      [&](size_t entry, std::span<const oxb_input> inputs, std::span<const int32_t> rest) {
        reference.run(entry, inputs, a);
        converted.run(entry, inputs, b);
        if (entry + 1 == info.entry_count) {
          compare(a, b, reference.entry(entry), rest, known, sums);
        }
      });

  const double rows = static_cast<double>(sums.rows);
  // Hidden states are no logits: they choose nothing.
  const bool chooses = info.task != OXB_TASK_ENCODE;
  const std::string output = chooses ? "logits" : "output";
  std::map<std::string, std::string> out = {
      {"tokens", std::to_string(tokens.size())},
      {"text", source.is_random() ? "random tokens" : "calibration text"},
      {output + "_cosine", number_text(sums.cosine / rows, "%.6f")},
      {output + "_max_abs_difference", number_text(sums.largest, "%.4g")},
  };
  if (!chooses) return out;
  // Rounding may leave a tiny negative number where there is no difference.
  out["mean_kl"] = number_text(std::max(0.0, sums.divergence / rows), "%.4g");
  out["same_choice"] = number_text(static_cast<double>(sums.same_choice) / rows, "%.4f");
  if (sums.predicted > 0) {
    const double predicted = static_cast<double>(sums.predicted);
    out["bits_per_token_f32"] = number_text(sums.float_bits / predicted, "%.4f");
    out["bits_per_token"] = number_text(sums.bits / predicted, "%.4f");
  }
  return out;
}

}  // namespace oxbow::convert
