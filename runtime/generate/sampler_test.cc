#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runtime/api/oxbow.h"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

oxb_sampler_options defaults() {
  oxb_sampler_options options = OXB_SAMPLER_OPTIONS_INIT;
  return options;
}

/// A sampler in exactly the memory it asked for, at an odd address.
class Sampler {
 public:
  Sampler(uint32_t vocabulary, const oxb_sampler_options& options) {
    size_t bytes = 0;
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(oxb_sampler_bytes(vocabulary, &options, &bytes, &error), OXB_OK) << error.text;
    memory_.resize(bytes + 1);
    EXPECT_EQ(
        oxb_sampler_create(vocabulary, &options, memory_.data() + 1, bytes, &sampler_, &error),
        OXB_OK)
        << error.text;
  }
  void accept(int32_t token) { (void)oxb_sampler_accept(sampler_, token, nullptr); }
  int32_t pick(const std::vector<float>& logits) {
    int32_t token = -1;
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(oxb_sampler_pick(sampler_, logits.data(), logits.size(), &token, &error), OXB_OK)
        << error.text;
    EXPECT_GE(token, 0);
    EXPECT_LT(token, static_cast<int32_t>(logits.size()));
    return token;
  }
  oxb_status status(const std::vector<float>& logits, oxb_error* error = nullptr) {
    int32_t token = -1;
    return oxb_sampler_pick(sampler_, logits.data(), logits.size(), &token, error);
  }
  std::vector<int> counts(const std::vector<float>& logits, int draws) {
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(pick(logits))];
    return counts;
  }

 private:
  std::vector<std::byte> memory_;
  oxb_sampler* sampler_ = nullptr;
};

TEST(Sampler, TemperatureZeroTakesTheMostLikely) {
  oxb_sampler_options options = defaults();
  options.temperature = 0.0f;
  Sampler sampler(4, options);
  EXPECT_EQ(sampler.pick({0.0f, 3.0f, -1.0f, 2.0f}), 1);
  EXPECT_EQ(sampler.pick({5.0f, 5.0f, 5.0f, 5.0f}), 0);
  EXPECT_EQ(sampler.pick({-kInfinity, -1.0f, -kInfinity, -1.0f}), 1);
}

TEST(Sampler, AVocabularyOfOneHasNoChoice) {
  for (float temperature : {0.0f, 1.0f}) {
    for (uint32_t top_k : {0u, 1u, 5u}) {
      oxb_sampler_options options = defaults();
      options.temperature = temperature;
      options.top_k = top_k;
      options.top_p = 0.5f;
      Sampler sampler(1, options);
      EXPECT_EQ(sampler.pick({-123.0f}), 0);
    }
  }
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  // With n draws the frequency of p deviates by more than 5 sqrt(p (1 - p) / n) about once in 10^6.
  constexpr int kDraws = 40000;
  const std::vector<float> logits = {1.0f, 0.0f, -1.0f, 2.0f, -kInfinity, 0.5f};
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    oxb_sampler_options options = defaults();
    options.temperature = temperature;
    options.seed = 11;
    Sampler sampler(6, options);
    const std::vector<int> counts = sampler.counts(logits, kDraws);
    double total = 0.0;
    for (float logit : logits) total += std::exp(static_cast<double>(logit / temperature));
    for (size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(static_cast<double>(logits[i] / temperature)) / total;
      EXPECT_NEAR(counts[i], p * kDraws, 5 * std::sqrt(p * (1 - p) * kDraws)) << i;
    }
    EXPECT_EQ(counts[4], 0);
  }
}

TEST(Sampler, EqualLogitsAreEquallyLikely) {
  oxb_sampler_options options = defaults();
  options.temperature = 1.0f;
  Sampler sampler(10, options);
  for (int count : sampler.counts(std::vector<float>(10, -7.0f), 20000)) {
    EXPECT_NEAR(count, 2000, 5 * std::sqrt(20000 * 0.1 * 0.9));
  }
}

TEST(Sampler, TopKKeepsTheKMostLikelyAndOfEqualsTheLowerIds) {
  oxb_sampler_options options = defaults();
  options.temperature = 5.0f;
  options.top_k = 3;
  Sampler sampler(6, options);
  const std::vector<int> counts = sampler.counts({1.0f, 2.0f, 1.0f, 0.0f, 1.0f, 3.0f}, 3000);
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[1], 0);
  EXPECT_GT(counts[5], 0);
  EXPECT_EQ(counts[2] + counts[3] + counts[4], 0);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.5, 0.25, 0.125, 0.125.
  const std::vector<float> logits = {std::log(0.125f), std::log(0.5f), std::log(0.25f),
                                     std::log(0.125f)};
  const auto kept = [&](float top_p, uint32_t top_k) {
    oxb_sampler_options options = defaults();
    options.temperature = 1.0f;
    options.top_p = top_p;
    options.top_k = top_k;
    Sampler sampler(4, options);
    const std::vector<int> counts = sampler.counts(logits, 2000);
    return std::vector<bool>{counts[0] > 0, counts[1] > 0, counts[2] > 0, counts[3] > 0};
  };
  EXPECT_EQ(kept(0.01f, 0), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(kept(0.49f, 0), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(kept(0.6f, 0), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(kept(0.8f, 0), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(kept(0.99f, 0), (std::vector<bool>{true, true, true, true}));
  // Of the two that top_k leaves, the first has two thirds.
  EXPECT_EQ(kept(0.6f, 2), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(kept(0.7f, 2), (std::vector<bool>{false, true, true, false}));
}

TEST(Sampler, TopKOfAllIsNoRestriction) {
  oxb_sampler_options options = defaults();
  options.temperature = 1.0f;
  options.seed = 3;
  Sampler plain(5, options);
  options.top_k = 5;
  Sampler limited(5, options);
  const std::vector<float> logits = {0.1f, 0.3f, -0.2f, 0.0f, 0.2f};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(plain.pick(logits), limited.pick(logits));
}

TEST(Sampler, TheSameSeedGivesTheSameTokens) {
  oxb_sampler_options options = defaults();
  options.top_p = 0.9f;
  options.seed = 42;
  Sampler a(50, options), b(50, options);
  options.seed = 43;
  Sampler c(50, options);
  std::vector<float> logits(50);
  for (size_t i = 0; i < 50; ++i) logits[i] = static_cast<float>(i % 7) * 0.3f;
  int different = 0;
  for (int i = 0; i < 200; ++i) {
    const int32_t token = a.pick(logits);
    ASSERT_EQ(token, b.pick(logits));
    different += token != c.pick(logits);
  }
  EXPECT_GT(different, 100);
}

TEST(Sampler, TheTokensOfASeedNeverChange) {
  // Pinned: a change here changes what users get from a seed they wrote down.
  oxb_sampler_options options = defaults();
  options.temperature = 1.0f;
  options.seed = 7;
  Sampler sampler(16, options);
  std::vector<int32_t> tokens;
  for (int i = 0; i < 12; ++i) tokens.push_back(sampler.pick(std::vector<float>(16, 0.0f)));
  EXPECT_EQ(tokens, (std::vector<int32_t>{6, 0, 14, 9, 7, 3, 7, 5, 2, 6, 1, 15}));
}

TEST(Sampler, ThePenaltyAppliesOncePerTokenInTheWindow) {
  oxb_sampler_options options = defaults();
  options.temperature = 0.0f;
  options.repetition_penalty = 2.0f;
  options.repetition_window = 3;
  Sampler sampler(4, options);
  const std::vector<float> logits = {4.0f, 3.0f, 2.5f, 0.0f};
  EXPECT_EQ(sampler.pick(logits), 0);
  sampler.accept(0);
  sampler.accept(0);  // Twice in the window: 4 / 2, not 4 / 4.
  EXPECT_EQ(sampler.pick(logits), 1);
  sampler.accept(1);
  EXPECT_EQ(sampler.pick(logits), 2);
  sampler.accept(2);  // 0 twice, then 1 and 2: one 0 is still in the window of three.
  EXPECT_EQ(sampler.pick(logits), 0);
  sampler.accept(3);
  EXPECT_EQ(sampler.pick(logits), 0);
}

TEST(Sampler, ThePenaltyPushesNegativeLogitsDown) {
  oxb_sampler_options options = defaults();
  options.temperature = 0.0f;
  options.repetition_penalty = 2.0f;
  Sampler sampler(2, options);
  sampler.accept(0);
  sampler.accept(-5);
  sampler.accept(1000);
  EXPECT_EQ(sampler.pick({-1.0f, -1.5f}), 1);
}

TEST(Sampler, AWindowOfNothingPenalisesNothing) {
  oxb_sampler_options options = defaults();
  options.temperature = 0.0f;
  options.repetition_penalty = 9.0f;
  options.repetition_window = 0;
  Sampler sampler(2, options);
  sampler.accept(0);
  EXPECT_EQ(sampler.pick({2.0f, 1.0f}), 0);
}

TEST(Sampler, ExtremeLogitsAndTemperaturesStillGiveATokenThatIsPossible) {
  const float largest = std::numeric_limits<float>::max();
  for (float temperature : {1e-38f, 1e-3f, 1.0f, 1e38f}) {
    for (float top_p : {1.0f, 0.5f}) {
      oxb_sampler_options options = defaults();
      options.temperature = temperature;
      options.top_p = top_p;
      options.repetition_penalty = 0.5f;
      Sampler sampler(4, options);
      sampler.accept(1);
      for (int i = 0; i < 50; ++i) {
        const int32_t token = sampler.pick({-kInfinity, largest, -largest, -kInfinity});
        EXPECT_TRUE(token == 1 || token == 2) << token;
      }
    }
  }
}

TEST(Sampler, WhatIsNoLogitIsRefused) {
  for (float temperature : {0.0f, 1.0f}) {
    oxb_sampler_options options = defaults();
    options.temperature = temperature;
    Sampler sampler(3, options);
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(sampler.status({0.0f, kNan, 0.0f}, &error), OXB_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.text).find("token 1"), std::string::npos) << error.text;
    EXPECT_EQ(sampler.status({0.0f, 0.0f, kInfinity}), OXB_INVALID_ARGUMENT);
    EXPECT_EQ(sampler.status({-kInfinity, -kInfinity, -kInfinity}), OXB_INVALID_ARGUMENT);
    EXPECT_EQ(sampler.status({0.0f, 0.0f, 0.0f}), OXB_OK);
  }
}

TEST(SamplerOptions, NonsenseIsRefused) {
  const auto refused = [](auto change) {
    oxb_sampler_options options = defaults();
    change(options);
    size_t bytes = 0;
    oxb_error error = OXB_ERROR_INIT;
    const oxb_status status = oxb_sampler_bytes(10, &options, &bytes, &error);
    EXPECT_NE(error.text[0], '\0');
    return status == OXB_INVALID_ARGUMENT;
  };
  for (float value : {-0.1f, kNan, kInfinity, -kInfinity}) {
    EXPECT_TRUE(refused([&](auto& options) { options.temperature = value; }));
  }
  for (float value : {0.0f, -0.5f, 1.01f, kNan, kInfinity}) {
    EXPECT_TRUE(refused([&](auto& options) { options.top_p = value; }));
  }
  for (float value : {0.0f, -1.0f, kNan, kInfinity}) {
    EXPECT_TRUE(refused([&](auto& options) { options.repetition_penalty = value; }));
  }
  EXPECT_TRUE(refused([](auto& options) { options.repetition_window = UINT32_MAX; }));
  EXPECT_TRUE(refused([](auto& options) { options.size = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.size = sizeof(size_t) - 1; }));
}

TEST(SamplerOptions, NullMeansTheDefaults) {
  const oxb_sampler_options options = defaults();
  size_t with = 0, without = 0;
  EXPECT_EQ(oxb_sampler_bytes(10, &options, &with, nullptr), OXB_OK);
  EXPECT_EQ(oxb_sampler_bytes(10, nullptr, &without, nullptr), OXB_OK);
  EXPECT_EQ(with, without);
}

TEST(SamplerMemory, EveryTooSmallSizeIsRefusedAndEveryAlignmentWorks) {
  const oxb_sampler_options options = defaults();
  size_t bytes = 0;
  ASSERT_EQ(oxb_sampler_bytes(5, &options, &bytes, nullptr), OXB_OK);
  oxb_sampler* sampler = nullptr;
  for (size_t size = 1; size < bytes; ++size) {
    std::vector<std::byte> memory(size);
    ASSERT_EQ(oxb_sampler_create(5, &options, memory.data(), size, &sampler, nullptr),
              OXB_BUFFER_TOO_SMALL);
    ASSERT_EQ(sampler, nullptr);
  }
  for (size_t shift = 0; shift < 64; ++shift) {
    std::vector<std::byte> memory(bytes + shift);
    ASSERT_EQ(oxb_sampler_create(5, &options, memory.data() + shift, bytes, &sampler, nullptr),
              OXB_OK);
    const std::vector<float> logits(5);
    for (int i = 0; i < 100; ++i) {
      int32_t token = -1;
      ASSERT_EQ(oxb_sampler_pick(sampler, logits.data(), logits.size(), &token, nullptr), OXB_OK);
      (void)oxb_sampler_accept(sampler, token, nullptr);
    }
  }
  EXPECT_EQ(oxb_sampler_create(5, &options, nullptr, bytes, &sampler, nullptr),
            OXB_INVALID_ARGUMENT);
  EXPECT_EQ(oxb_sampler_bytes(0, &options, &bytes, nullptr), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(oxb_sampler_bytes(UINT32_MAX, &options, &bytes, nullptr), OXB_INVALID_ARGUMENT);
}

}  // namespace
