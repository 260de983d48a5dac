#include "converter/quality.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "converter/errors.h"
#include "runtime/api/oxbow.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

constexpr size_t kMostTokens = 256;

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<std::byte[], Free>;

AlignedBytes allocate(size_t bytes) {
  auto* memory = static_cast<std::byte*>(
      std::aligned_alloc(kTensorAlignment, round_up(std::max<size_t>(bytes, 1), kTensorAlignment)));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedBytes(memory);
}

/// A model and a session of it, in memory.
class Runner {
 public:
  explicit Runner(std::span<const std::byte> file) : file_(allocate(file.size())) {
    std::memcpy(file_.get(), file.data(), file.size());
    oxb_error error = {};
    check(oxb_model_open_memory(file_.get(), file.size(), &model_, &error), error);
    size_t bytes = 0;
    check(oxb_session_arena_bytes(model_, nullptr, &bytes, &error), error);
    arena_ = allocate(bytes);
    check(oxb_session_create(model_, nullptr, arena_.get(), bytes, &session_, &error), error);
    oxb_model_get_info(model_, &info_);
  }
  ~Runner() {
    oxb_session_destroy(session_);
    oxb_model_close(model_);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const oxb_model* model() const { return model_; }
  const oxb_model_info& info() const { return info_; }

  /// A model that translates needs something to translate.
  void start(std::span<const int32_t> source) {
    if (info_.task != OXB_TASK_TRANSLATE) return;
    oxb_error error = {};
    oxb_entry_info encoder = {};
    check(oxb_model_entry_info(model_, 0, &encoder, &error), error);
    oxb_input_info input = {};
    check(oxb_model_input_info(model_, 0, 0, &input, &error), error);
    std::vector<int32_t> ids(source.begin(), source.end());
    ids.resize(std::min<size_t>(ids.size(), encoder.max_rows));
    for (int32_t& id : ids) id %= static_cast<int32_t>(input.limit);
    check(oxb_session_encode(session_, ids.data(), ids.size(), &error), error);
  }

  /// Returns how many rows of logits there are: one for each token, or as many as a classifier gives.
  size_t run(std::span<const int32_t> tokens, std::vector<float>& logits) {
    oxb_error error = {};
    oxb_entry_info entry = {};
    check(oxb_model_entry_info(model_, info_.entry_count - 1, &entry, &error), error);
    const size_t rows = entry.output_rows != 0 ? entry.output_rows : tokens.size();
    logits.resize(rows * info_.output_width);
    check(oxb_session_run(session_, tokens.data(), tokens.size(), logits.data(), rows, &error),
          error);
    return rows;
  }

 private:
  static void check(oxb_status status, const oxb_error& error) {
    if (status != OXB_OK) {
      throw InputError(std::string("the runtime refuses the converted model: ") + error.text);
    }
  }

  AlignedBytes file_, arena_;
  oxb_model* model_ = nullptr;
  oxb_session* session_ = nullptr;
  oxb_model_info info_ = {};
};

std::vector<int32_t> random_tokens(uint32_t vocabulary) {
  std::vector<int32_t> tokens(kMostTokens);
  uint64_t state = 1;
  for (int32_t& token : tokens) {
    // Knuth's MMIX generator; its upper bits are good enough and the same everywhere.
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    token = static_cast<int32_t>((state >> 33) % vocabulary);
  }
  return tokens;
}

std::vector<int32_t> encode(const Runner& runner, const std::string& text) {
  std::vector<int32_t> tokens(kMostTokens);
  size_t count = 0, consumed = 0;
  oxb_error error = {};
  if (oxb_encode(runner.model(), text.data(), text.size(), tokens.data(), tokens.size(), &count,
                 &consumed, &error) != OXB_OK) {
    throw InputError(std::string("the calibration text cannot be encoded: ") + error.text);
  }
  tokens.resize(count);
  if (count < 2) throw InputError("the calibration text has less than two characters");
  return tokens;
}

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

}  // namespace

std::map<std::string, std::string> measure_quality(std::span<const std::byte> float_file,
                                                   std::span<const std::byte> file,
                                                   const std::string& text) {
  Runner reference(float_file), converted(file);
  std::vector<int32_t> tokens =
      text.empty() ? random_tokens(reference.info().vocabulary) : encode(converted, text);
  reference.start(tokens);
  converted.start(tokens);
  const uint64_t capacity = reference.info().capacity;
  if (capacity != 0 && tokens.size() > capacity) tokens.resize(capacity);
  Sums sums;
  std::vector<float> a, b;
  const size_t width = reference.info().output_width;
  const bool predicts = !text.empty() && reference.info().task == OXB_TASK_GENERATE;
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min<size_t>(tokens.size() - done, reference.info().max_segment);
    const std::span<const int32_t> segment = std::span(tokens).subspan(done, count);
    reference.run(segment, a);
    const size_t rows = converted.run(segment, b);
    for (size_t row = 0; row < rows; ++row) {
      const bool known = predicts && done + row + 1 < tokens.size();
      sums.add(std::span(a).subspan(row * width, width), std::span(b).subspan(row * width, width),
               known ? tokens[done + row + 1] : -1);
    }
    done += count;
  }

  const double rows = static_cast<double>(sums.rows);
  std::map<std::string, std::string> out = {
      {"tokens", std::to_string(sums.rows)},
      {"text", text.empty() ? "random tokens" : "calibration text"},
      {"logits_cosine", number_text(sums.cosine / rows, "%.6f")},
      {"logits_max_abs_difference", number_text(sums.largest, "%.4g")},
      // Rounding may leave a tiny negative number where there is no difference.
      {"mean_kl", number_text(std::max(0.0, sums.divergence / rows), "%.4g")},
      {"same_choice", number_text(static_cast<double>(sums.same_choice) / rows, "%.4f")},
  };
  if (sums.predicted > 0) {
    const double predicted = static_cast<double>(sums.predicted);
    out["bits_per_token_f32"] = number_text(sums.float_bits / predicted, "%.4f");
    out["bits_per_token"] = number_text(sums.bits / predicted, "%.4f");
  }
  return out;
}

}  // namespace oxbow::convert
