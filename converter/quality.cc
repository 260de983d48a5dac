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
/// Of a text that is encoded before.
constexpr size_t kEncodedTokens = 64;

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
  oxb_entry_info entry(size_t index) const {
    oxb_entry_info entry = {};
    oxb_error error = {};
    check(oxb_model_entry_info(model_, index, &entry, &error), error);
    return entry;
  }
  oxb_input_info input(size_t entry, size_t index) const {
    oxb_input_info input = {};
    oxb_error error = {};
    check(oxb_model_input_info(model_, entry, index, &input, &error), error);
    return input;
  }

  void reset() { oxb_session_reset(session_); }
  void run(size_t index, std::span<const oxb_input> inputs, std::vector<float>& output) {
    const oxb_entry_info info = entry(index);
    const size_t rows = info.output_rows != 0 ? info.output_rows : inputs[0].rows;
    output.resize(rows * info.output_width);
    oxb_error error = {};
    check(oxb_session_run_entry(session_, index, inputs.data(), inputs.size(), output.data(), rows,
                                &error),
          error);
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

/// Numbers that are the same everywhere.
class Random {
 public:
  uint32_t next() {
    // Knuth's MMIX generator; its upper bits are good enough.
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 33);
  }
  int32_t below(uint32_t limit) { return static_cast<int32_t>(next() % std::max(limit, 1u)); }
  /// Of variance 1, evenly spread.
  float value() { return (static_cast<float>(next()) / 0x80000000u - 0.5f) * 3.4641f; }

 private:
  uint64_t state_ = 1;
};

std::vector<int32_t> random_tokens(uint32_t limit) {
  Random random;
  std::vector<int32_t> tokens(kMostTokens);
  for (int32_t& token : tokens) token = random.below(limit);
  return tokens;
}

/// What a run of an entry point is given: tokens, and numbers for whatever else it must have.
class Inputs {
 public:
  Inputs(const Runner& runner, size_t entry, std::span<const int32_t> tokens) {
    for (size_t i = 0; i < runner.entry(entry).input_count; ++i) {
      const oxb_input_info info = runner.input(entry, i);
      if (i > 0 && info.required == 0) continue;
      if (info.type == OXB_TYPE_F32) {
        std::vector<float>& values = floats_.emplace_back(tokens.size() * info.width);
        for (float& value : values) value = random_.value();
        list_.push_back({info.name, values.data(), tokens.size()});
      } else if (i == 0) {
        list_.push_back({info.name, tokens.data(), tokens.size()});
      } else {
        std::vector<int32_t>& values = integers_.emplace_back(tokens.size());
        for (int32_t& value : values) value = random_.below(info.limit);
        list_.push_back({info.name, values.data(), tokens.size()});
      }
    }
  }
  std::span<const oxb_input> list() const { return list_; }

 private:
  Random random_;
  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<int32_t>> integers_;
  std::vector<oxb_input> list_;
};

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

/// Runs both models side by side.
class Comparison {
 public:
  Comparison(Runner& reference, Runner& converted) : a_(reference), b_(converted) {}

  /// All tokens through the main entry point, behind a text where there is an encoder. `known`: the
  /// tokens are a text, in which the next can be predicted.
  void run(std::span<const int32_t> tokens, bool known) {
    const size_t main = a_.info().entry_count - 1;
    const oxb_entry_info entry = a_.entry(main);
    start(tokens);
    uint64_t position = 0;
    for (size_t done = 0; done < tokens.size();) {
      const uint64_t capacity = a_.info().capacity;
      if (entry.starts == 0 && capacity != 0 && position == capacity) {
        start(tokens);
        position = 0;
      }
      size_t count = std::min<size_t>(tokens.size() - done, entry.max_rows);
      if (entry.starts == 0 && capacity != 0) {
        count = std::min<uint64_t>(count, capacity - position);
      }
      const Inputs inputs(a_, main, tokens.subspan(done, count));
      a_.run(main, inputs.list(), output_a_);
      b_.run(main, inputs.list(), output_b_);
      compare(tokens.subspan(done), entry, known);
      done += count;
      position += count;
    }
  }

  const Sums& sums() const { return sums_; }

 private:
  /// A new stream.
  void start(std::span<const int32_t> tokens) {
    a_.reset();
    b_.reset();
    for (size_t e = 0; e + 1 < a_.info().entry_count; ++e) {
      const oxb_input_info input = a_.input(e, 0);
      const size_t count = std::min<size_t>({a_.entry(e).max_rows, tokens.size(), kEncodedTokens});
      std::vector<int32_t> text(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count));
      if (input.type == OXB_TYPE_I32) {
        for (int32_t& token : text) token %= static_cast<int32_t>(std::max(input.limit, 1u));
      }
      const Inputs inputs(a_, e, text);
      a_.run(e, inputs.list(), output_a_);
      b_.run(e, inputs.list(), output_b_);
    }
  }

  void compare(std::span<const int32_t> rest, const oxb_entry_info& entry, bool known) {
    const size_t width = entry.output_width;
    for (size_t row = 0; row * width < output_a_.size(); ++row) {
      const bool next = known && entry.output_rows == 0 && row + 1 < rest.size();
      sums_.add(std::span(output_a_).subspan(row * width, width),
                std::span(output_b_).subspan(row * width, width), next ? rest[row + 1] : -1);
    }
  }

  Runner& a_;
  Runner& b_;
  std::vector<float> output_a_, output_b_;
  Sums sums_;
};

}  // namespace

std::map<std::string, std::string> measure_quality(std::span<const std::byte> float_file,
                                                   std::span<const std::byte> file,
                                                   const std::string& text) {
  Runner reference(float_file), converted(file);
  const oxb_model_info& info = reference.info();
  const std::vector<int32_t> tokens =
      text.empty() ? random_tokens(info.vocabulary) : encode(converted, text);
  Comparison comparison(reference, converted);
  comparison.run(tokens, !text.empty() && info.task == OXB_TASK_GENERATE);

  const Sums& sums = comparison.sums();
  const double rows = static_cast<double>(sums.rows);
  // Hidden states are no logits: they choose nothing.
  const bool chooses = info.task != OXB_TASK_ENCODE;
  const std::string output = chooses ? "logits" : "output";
  std::map<std::string, std::string> out = {
      {"tokens", std::to_string(tokens.size())},
      {"text", text.empty() ? "random tokens" : "calibration text"},
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
