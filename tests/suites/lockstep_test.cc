// Streams that go through a model together get the bits that each would get alone.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tests/support/api_refusal.h"
#include "tests/support/golden.h"
#include "tests/support/random_stream.h"

namespace oxbow::testing {
namespace {

constexpr size_t kStreams = 5;

oxb::Session create(const oxb::Model& model,
                    const oxb_session_options& options = oxb::SessionOptions()) {
  auto made = oxb::Session::create(model, options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return std::move(*made);
}

/// A lender and its borrowers, each at another position.
class Family {
 public:
  Family(const oxb::Model& model, const RandomStream& stream) : model_(model), stream_(stream) {
    oxb::SessionOptions options;
    for (size_t i = 0; i < kStreams; ++i) {
      sessions.push_back(create(model, options));
      options.lender = sessions.front().get();
    }
    stream.start(sessions.front());
    for (size_t i = 0; i < kStreams; ++i) {
      for (size_t k = 0; k < i; ++k) feed(i, token(k));
    }
  }

  int32_t token(size_t index) const { return stream_.tokens()[index % stream_.tokens().size()]; }

  std::vector<float> feed(size_t stream, int32_t token) {
    std::vector<float> logits(width());
    const oxb::Status status = sessions[stream].run({&token, 1}, logits);
    EXPECT_TRUE(status.ok()) << status.text();
    return logits;
  }

  std::vector<float> feed_all(std::span<const int32_t> tokens) {
    std::vector<oxb::Session*> all;
    for (oxb::Session& session : sessions) all.push_back(&session);
    std::vector<float> logits(kStreams * width());
    const oxb::Status status = oxb::Session::run_together(all, tokens, logits);
    EXPECT_TRUE(status.ok()) << status.text();
    return logits;
  }

  std::vector<std::byte> saved(size_t stream) const {
    std::vector<std::byte> state(sessions[stream].state_bytes());
    EXPECT_TRUE(sessions[stream].save(state).ok());
    return state;
  }

  size_t width() const { return model_.info().output_width; }

  std::vector<oxb::Session> sessions;

 private:
  const oxb::Model& model_;
  const RandomStream& stream_;
};

bool streams_tokens(const oxb::Model& model) {
  const oxb_model_info info = model.info();
  const oxb_entry_info entry = *model.entry_info(info.entry_count - 1);
  if (entry.starts != 0 || entry.output_rows != 0) return false;
  for (size_t i = 0; i < entry.input_count; ++i) {
    const oxb_input_info input = *model.input_info(info.entry_count - 1, i);
    if (input.type != OXB_TYPE_I32 || (i > 0 && input.required != 0)) return false;
  }
  return info.capacity == 0 || info.capacity >= 2 * kStreams;
}

class Lockstep : public ::testing::TestWithParam<const char*> {};

TEST_P(Lockstep, GivesTheBitsOfOneStreamAfterTheOther) {
  size_t tried = 0;
  for (const std::string& name : golden_cases()) {
    SCOPED_TRACE(name);
    const auto model = oxb::Model::open(golden_model(name, {"--weights", GetParam()}).c_str());
    ASSERT_TRUE(model.ok()) << model.status().text();
    if (!streams_tokens(*model)) continue;
    ++tried;
    const RandomStream stream(*model, 5);
    Family together(*model, stream), apart(*model, stream);
    for (size_t round = 0; round < 4; ++round) {
      std::vector<int32_t> tokens;
      std::vector<float> expected;
      for (size_t i = 0; i < kStreams; ++i) {
        tokens.push_back(apart.token(3 * i + round));
        const std::vector<float> logits = apart.feed(i, tokens.back());
        expected.insert(expected.end(), logits.begin(), logits.end());
      }
      ASSERT_EQ(together.feed_all(tokens), expected) << "round " << round;
    }
    for (size_t i = 0; i < kStreams; ++i) {
      EXPECT_EQ(together.saved(i), apart.saved(i)) << "stream " << i;
    }
  }
  EXPECT_GT(tried, 30u);
}

TEST_P(Lockstep, ABatchGivesTheBitsOfOneTextAfterTheOther) {
  size_t tried = 0;
  for (const std::string& name : golden_cases()) {
    SCOPED_TRACE(name);
    const auto model = oxb::Model::open(golden_model(name, {"--weights", GetParam()}).c_str());
    ASSERT_TRUE(model.ok()) << model.status().text();
    const size_t last = model->info().entry_count - 1, width = model->info().output_width;
    const oxb_entry_info entry = *model->entry_info(last);
    const oxb_input_info input = *model->input_info(last, 0);
    if (entry.starts == 0 || entry.output_rows != 0 || input.type != OXB_TYPE_I32) continue;
    const std::vector<size_t> lengths = {5, 3, 5, 2, 1, 9, 4, 4};
    std::vector<int32_t> tokens(33);
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int32_t>((i * 7 + 3) % input.limit);
    }
    std::vector<float> expected(tokens.size() * width), all(tokens.size() * width);
    oxb::Session session = create(*model);
    bool any_length = true;
    size_t at = 0;
    for (const size_t length : lengths) {
      const auto rows = std::span(expected).subspan(at * width, length * width);
      any_length = any_length && session.run(std::span(tokens).subspan(at, length), rows).ok();
      at += length;
    }
    if (!any_length) continue;
    ++tried;
    const oxb::Status status = session.run_batch(tokens, lengths, all);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(all, expected);
  }
  EXPECT_GT(tried, 5u);
}

INSTANTIATE_TEST_SUITE_P(Weights, Lockstep, ::testing::Values("f32", "int8"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(LockstepSteps, AMatrixIsReadOnceForAllStreams) {
  const auto model = oxb::Model::open(golden_model("llama/l1_gqa", {"--weights", "int8"}).c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  const RandomStream stream(*model, 5);
  Family family(*model, stream);
  struct Count {
    size_t linear = 0, attention = 0;
  } count;
  for (oxb::Session& session : family.sessions) {
    session.set_profile(
        [](void* context, uint32_t, const char* op, const char*, uint64_t) {
          Count& counted = *static_cast<Count*>(context);
          counted.linear += std::string_view(op) == "Linear";
          counted.attention += std::string_view(op) == "Attention";
        },
        &count);
  }
  family.feed(0, family.token(0));
  const Count alone = count;
  count = {};
  family.feed_all(std::vector<int32_t>(kStreams, 1));
  EXPECT_GT(alone.linear, 0u);
  EXPECT_EQ(count.linear, alone.linear);
  EXPECT_EQ(count.attention, kStreams * alone.attention);
}

TEST(LockstepSteps, TextsOfABatchShareMatrices) {
  const auto model = oxb::Model::open(golden_model("bert/b2_mlm", {"--weights", "int8"}).c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  oxb::Session session = create(*model);
  size_t linear = 0;
  session.set_profile(
      [](void* context, uint32_t, const char* op, const char*, uint64_t) {
        *static_cast<size_t*>(context) += std::string_view(op) == "Linear";
      },
      &linear);
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6};
  std::vector<float> rows(tokens.size() * model->info().output_width);
  ASSERT_TRUE(session.run_batch(tokens, std::vector<size_t>{6}, rows).ok());
  const size_t alone = linear;
  linear = 0;
  ASSERT_TRUE(session.run_batch(tokens, std::vector<size_t>{3, 2, 1}, rows).ok());
  EXPECT_EQ(linear, alone);
}

TEST(LockstepSteps, SessionsWithMemoryOfTheirOwnRunOneByOne) {
  const auto model = oxb::Model::open(golden_model("llama/l1_gqa", {"--weights", "int8"}).c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  oxb::Session first = create(*model), second = create(*model);
  oxb::Session* const both[] = {&first, &second};
  const int32_t tokens[] = {1, 1};
  std::vector<float> logits(2 * model->info().output_width);
  ASSERT_TRUE(oxb::Session::run_together(both, tokens, logits).ok());
  EXPECT_TRUE(std::equal(logits.begin(), logits.begin() + logits.size() / 2,
                         logits.begin() + logits.size() / 2));
}

TEST(LockstepSteps, WhatIsRefusedChangesNothing) {
  const auto model = oxb::Model::open(golden_model("llama/l1_gqa", {"--weights", "int8"}).c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  oxb::Session first = create(*model);
  oxb::SessionOptions options;
  options.lender = first.get();
  oxb::Session second = create(*model, options);
  oxb::Session* const both[] = {&first, &second};
  oxb::Session* const twice[] = {&first, &first};
  const int32_t tokens[] = {1, 1}, wrong[] = {1, -1};
  std::vector<float> logits(2 * model->info().output_width);
  expect_refused(oxb::Session::run_together(twice, tokens, logits), OXB_INVALID_ARGUMENT, "twice");
  expect_refused(oxb::Session::run_together(both, wrong, logits), OXB_INVALID_ARGUMENT, "-1");
  expect_refused(oxb::Session::run_together(both, tokens, std::span(logits).subspan(1)),
                 OXB_BUFFER_TOO_SMALL, "room for");
  expect_refused(oxb::Session::run_together(both, {tokens, 1}, logits), OXB_INVALID_ARGUMENT,
                 "fewer");
  oxb_session* const handle = first.get();
  EXPECT_EQ(oxb_sessions_run(&handle, SIZE_MAX, tokens, nullptr, 0, nullptr), OXB_INVALID_ARGUMENT);
  second.cancel();
  expect_refused(oxb::Session::run_together(both, tokens, logits), OXB_CANCELLED, "cancelled");
  EXPECT_EQ(first.position(), 0u);
  EXPECT_EQ(second.position(), 0u);
  ASSERT_TRUE(oxb::Session::run_together(both, tokens, logits).ok());
  EXPECT_EQ(second.position(), 1u);
}

}  // namespace
}  // namespace oxbow::testing
