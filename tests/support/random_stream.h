#pragma once

// What a model makes of random tokens, for comparing one way of running it with another.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "runtime/api/oxbow.hpp"

namespace oxbow::testing {

/// A stream of random tokens, behind a random text or recording when the model has an encoder.
class RandomStream {
 public:
  RandomStream(const oxb::Model& model, uint32_t seed) : model_(model), random_(seed) {
    const oxb_model_info info = model.info();
    last_ = info.entry_count - 1;
    const auto entry = model.entry_info(last_);
    entry_ = *entry;
    // Long enough for several runs and memories that are full, as far as the model goes.
    const uint64_t wanted = 2 * uint64_t{info.max_segment} + 9;
    tokens_ = some_tokens(last_, info.capacity == 0 ? wanted : std::min(wanted, info.capacity));
    if (info.task == OXB_TASK_TRANSLATE) {
      const auto encoder = model.entry_info(0);
      if (model.input_info(0, 0)->type == OXB_TYPE_I32) {
        text_ = some_tokens(0, std::min<uint64_t>(17, encoder->max_rows));
      } else {
        recording_ = some_numbers(size_t{encoder->max_rows} * model.input_info(0, 0)->width);
      }
    }
  }

  /// Only models that promise it, and take tokens.
  bool can_be_cut() const {
    return entry_.any_pieces != 0 && model_.input_info(last_, 0)->type == OXB_TYPE_I32;
  }

  const std::vector<int32_t>& tokens() const { return tokens_; }

  /// Reads the random text or recording, of a model that wants one.
  void start(oxb::Session& session) const {
    if (!text_.empty()) {
      const oxb::Status status = session.encode(text_);
      EXPECT_TRUE(status.ok()) << status.text();
    }
    if (!recording_.empty()) {
      const auto encoder = model_.entry_info(0);
      const oxb_input input = oxb::input(model_.input_info(0, 0)->name,
                                         std::span<const float>(recording_), encoder->max_rows);
      std::vector<float> hidden(size_t{encoder->output_rows} * encoder->output_width);
      const oxb::Status status = session.run_entry(0, {&input, 1}, hidden, encoder->output_rows);
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }

  /// All logits, with runs of the lengths that `next` gives.
  template <typename F>
  std::vector<float> logits(F&& next, const oxb_session_options& options = oxb::SessionOptions()) {
    auto session = oxb::Session::create(model_, options);
    EXPECT_TRUE(session.ok()) << session.status().text();
    start(*session);
    std::vector<float> logits(tokens_.size() * entry_.output_width);
    for (size_t done = 0; done < tokens_.size();) {
      const size_t count =
          std::min({size_t{next()}, tokens_.size() - done, size_t{entry_.max_rows}});
      const oxb::Status status = session->run(
          std::span(tokens_).subspan(done, count),
          std::span(logits).subspan(done * entry_.output_width, count * entry_.output_width));
      EXPECT_TRUE(status.ok()) << status.text();
      done += count;
    }
    return logits;
  }

 private:
  std::vector<int32_t> some_tokens(size_t entry, uint64_t count) {
    std::vector<int32_t> tokens(count);
    const uint32_t limit = model_.input_info(entry, 0)->limit;
    for (int32_t& token : tokens) {
      token = limit == 0 ? 0 : static_cast<int32_t>(random_() % limit);
    }
    return tokens;
  }

  std::vector<float> some_numbers(size_t count) {
    std::vector<float> numbers(count);
    for (float& number : numbers) number = static_cast<float>(random_() % 2001) / 1000.0f - 1.0f;
    return numbers;
  }

  const oxb::Model& model_;
  std::mt19937 random_;
  size_t last_ = 0;
  oxb_entry_info entry_ = OXB_ENTRY_INFO_INIT;
  std::vector<int32_t> tokens_, text_;
  std::vector<float> recording_;
};

}  // namespace oxbow::testing
