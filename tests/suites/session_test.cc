// A session as an application uses it, through the C interface: memory, state, threads.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/api/oxbow.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

struct Opened {
  explicit Opened(TinyModel& bytes) {
    oxb_error error = OXB_ERROR_INIT;
    const oxb_status status =
        oxb_model_open_memory(bytes.data.get(), bytes.size, nullptr, &model, &error);
    if (status != OXB_OK) throw std::runtime_error(error.text);
    (void)oxb_model_get_info(model, &info, nullptr);
  }
  ~Opened() { oxb_model_close(model); }
  oxb_model* model = nullptr;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
};

// A session with its arena; `shift` moves the arena off every alignment.
struct Started {
  explicit Started(const Opened& opened, uint32_t threads = 1, size_t shift = 0,
                   oxb_backend backend = OXB_BACKEND_AUTO, std::byte filler = std::byte{0})
      : width(opened.info.output_width) {
    oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
    options.threads = threads;
    options.backend = backend;
    oxb_error error = OXB_ERROR_INIT;
    oxb_plan plan = OXB_PLAN_INIT;
    oxb_status status = oxb_session_plan(opened.model, &options, &plan, &error);
    arena.resize(plan.arena_bytes + shift, filler);
    if (status == OXB_OK) {
      status = oxb_session_create(opened.model, &plan, arena.data() + shift, plan.arena_bytes,
                                  &session, &error);
    }
    if (status != OXB_OK) throw std::runtime_error(error.text);
  }
  ~Started() { oxb_session_destroy(session); }

  std::vector<float> feed(const std::vector<int32_t>& tokens) {
    std::vector<float> logits(tokens.size() * width);
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(oxb_session_run(session, tokens.data(), tokens.size(), tokens.size(), logits.data(),
                              logits.size(), &error),
              OXB_OK)
        << error.text;
    return logits;
  }

  size_t state_bytes() const {
    size_t bytes = 0;
    EXPECT_EQ(oxb_session_state_bytes(session, &bytes, nullptr), OXB_OK);
    return bytes;
  }
  uint64_t position() const {
    uint64_t position = 0;
    EXPECT_EQ(oxb_session_position(session, &position, nullptr), OXB_OK);
    return position;
  }

  uint32_t width;
  std::vector<std::byte> arena;
  oxb_session* session = nullptr;
};

// Segments of 1 to 5 tokens, the same for the same seed.
std::vector<std::vector<int32_t>> some_segments(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<int32_t>> segments(count);
  for (auto& segment : segments) {
    segment.resize(1 + random() % 5);
    for (int32_t& token : segment) token = static_cast<int32_t>(random() % 5);
  }
  return segments;
}

class SessionTest : public ::testing::TestWithParam<const char*> {
 protected:
  SessionTest() : bytes_(tiny_model(GetParam())), opened_(bytes_) {}
  TinyModel bytes_;
  Opened opened_;
};

TEST_P(SessionTest, TheArenaGrownByteByByteFailsCleanlyUntilItIsEnough) {
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_session_plan(opened_.model, nullptr, &plan, &error), OXB_OK);
  const size_t needed = plan.arena_bytes;
  for (size_t bytes = 1; bytes <= needed; bytes += bytes + 97 < needed ? 97 : 1) {
    std::vector<std::byte> arena(bytes);  // exact, so that a sanitizer sees a byte too many
    oxb_session* session = nullptr;
    error = OXB_ERROR_INIT;
    const oxb_status status =
        oxb_session_create(opened_.model, &plan, arena.data(), bytes, &session, &error);
    if (bytes < needed) {
      EXPECT_EQ(status, OXB_ARENA_TOO_SMALL) << bytes;
      EXPECT_EQ(session, nullptr);
      EXPECT_NE(std::strstr(error.text, std::to_string(needed).c_str()), nullptr) << error.text;
    } else {
      EXPECT_EQ(status, OXB_OK) << error.text;
      const int32_t token = 1;
      EXPECT_EQ(oxb_session_run(session, &token, 1, 0, nullptr, 0, &error), OXB_OK);
      oxb_session_destroy(session);
    }
  }
}

TEST_P(SessionTest, ThePlanAddsUpAndSaysWhatIsTaken) {
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_session_plan(opened_.model, nullptr, &plan, &error), OXB_OK);
  EXPECT_EQ(plan.session_bytes + plan.state_bytes + plan.activation_bytes + plan.scratch_bytes + 63,
            plan.arena_bytes);
  EXPECT_EQ(plan.device_bytes, 0u);
  EXPECT_EQ(plan.library_bytes, 0u);
  Started session(opened_);
  EXPECT_EQ(session.arena.size(), plan.arena_bytes);
  EXPECT_EQ(session.state_bytes(), plan.checkpoint_bytes);
  oxb_session_options borrowing = OXB_SESSION_OPTIONS_INIT;
  borrowing.lender = session.session;
  oxb_plan beam = OXB_PLAN_INIT;
  ASSERT_EQ(oxb_session_plan(opened_.model, &borrowing, &beam, &error), OXB_OK);
  EXPECT_EQ(beam.arena_bytes, plan.beam_bytes);
  EXPECT_EQ(beam.beam_bytes, 0u);
}

TEST_P(SessionTest, AnArenaOfAnyAlignmentGivesTheSameResult) {
  Started aligned(opened_), odd(opened_, 1, 13);
  for (const auto& segment : some_segments(20, 1))
    EXPECT_EQ(aligned.feed(segment), odd.feed(segment));
}

TEST_P(SessionTest, WhatTheArenaHeldBeforeShowsNeitherInResultsNorInSavedStates) {
  // As floats, 0xff bytes are NaN.
  Started clean(opened_), dirty(opened_, 1, 0, OXB_BACKEND_AUTO, std::byte{0xff});
  const auto saved = [](const Started& started) {
    std::vector<std::byte> blob(started.state_bytes());
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(oxb_session_save(started.session, blob.data(), blob.size(), &error), OXB_OK);
    return blob;
  };
  EXPECT_EQ(saved(clean), saved(dirty));
  for (const auto& segment : some_segments(20, 5)) {
    EXPECT_EQ(clean.feed(segment), dirty.feed(segment));
    EXPECT_EQ(saved(clean), saved(dirty));
  }
  (void)oxb_session_reset(dirty.session, nullptr);
  EXPECT_EQ(saved(Started(opened_)), saved(dirty)) << "rows of an earlier stream";
}

TEST_P(SessionTest, ResetStartsTheSameStreamAgain) {
  Started used(opened_);
  std::vector<std::vector<float>> first;
  const auto segments = some_segments(12, 2);
  for (const auto& segment : segments) first.push_back(used.feed(segment));
  (void)oxb_session_reset(used.session, nullptr);
  EXPECT_EQ(used.position(), 0u);
  for (size_t i = 0; i < segments.size(); ++i) EXPECT_EQ(used.feed(segments[i]), first[i]);
}

TEST_P(SessionTest, FewerLogitsRowsAreTheLastOfAll) {
  Started all(opened_), some(opened_);
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 0};
  const std::vector<float> every = all.feed(tokens);
  std::vector<float> two(2 * opened_.info.output_width);
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_session_run(some.session, tokens.data(), 5, 2, two.data(), two.size(), &error),
            OXB_OK);
  EXPECT_EQ(two, std::vector<float>(every.end() - static_cast<long>(two.size()), every.end()));
  ASSERT_EQ(oxb_session_run(some.session, tokens.data(), 5, 0, nullptr, 0, &error), OXB_OK);
  all.feed(tokens);
  EXPECT_EQ(all.feed({1}), some.feed({1})) << "logits that were not wanted changed the stream";
}

TEST_P(SessionTest, ASavedStateGoesOnInAnotherSession) {
  Started first(opened_);
  for (const auto& segment : some_segments(9, 3)) first.feed(segment);
  std::vector<std::byte> blob(first.state_bytes());
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_session_save(first.session, blob.data(), blob.size(), &error), OXB_OK)
      << error.text;
  Started second(opened_);
  second.feed({1, 1});
  ASSERT_EQ(oxb_session_load(second.session, blob.data(), blob.size(), &error), OXB_OK)
      << error.text;
  EXPECT_EQ(second.position(), first.position());
  for (const auto& segment : some_segments(9, 4))
    EXPECT_EQ(first.feed(segment), second.feed(segment));
}

TEST_P(SessionTest, RewindTakesBackAnyNumberOfRuns) {
  Started session(opened_);
  for (const auto& segment : some_segments(9, 5)) session.feed(segment);
  std::vector<std::byte> checkpoint(session.state_bytes());
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_session_checkpoint(session.session, checkpoint.data(), checkpoint.size(), &error),
            OXB_OK);
  const auto segments = some_segments(7, 6);
  std::vector<std::vector<float>> before;
  for (const auto& segment : segments) before.push_back(session.feed(segment));
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(oxb_session_rewind(session.session, checkpoint.data(), checkpoint.size(), &error),
              OXB_OK);
    for (size_t i = 0; i < segments.size(); ++i) EXPECT_EQ(session.feed(segments[i]), before[i]);
  }
}

TEST_P(SessionTest, ADamagedForeignOrShortStateIsRefusedAndChangesNothing) {
  Started session(opened_), twin(opened_);
  for (const auto& segment : some_segments(9, 7)) {
    session.feed(segment);
    twin.feed(segment);
  }
  std::vector<std::byte> blob(session.state_bytes());
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_session_save(session.session, blob.data(), blob.size(), &error), OXB_OK);
  for (size_t i = 0; i < blob.size(); ++i) {
    blob[i] ^= std::byte{0x10};
    error = OXB_ERROR_INIT;
    EXPECT_NE(oxb_session_load(session.session, blob.data(), blob.size(), &error), OXB_OK) << i;
    EXPECT_NE(error.text[0], '\0');
    blob[i] ^= std::byte{0x10};
  }
  EXPECT_EQ(oxb_session_load(session.session, blob.data(), blob.size() - 1, &error),
            OXB_STATE_CORRUPT);
  EXPECT_EQ(oxb_session_load(session.session, blob.data(), 3, &error), OXB_STATE_CORRUPT);
  EXPECT_EQ(oxb_session_save(session.session, blob.data(), blob.size() - 1, &error),
            OXB_BUFFER_TOO_SMALL);
  EXPECT_EQ(oxb_session_rewind(session.session, blob.data(), blob.size(), &error),
            OXB_STATE_CORRUPT)
      << "a saved state is no checkpoint";

  TinyCheckpoint other;
  other.tensors["generator.bias"].values[0] += 1.0f;
  TinyModel other_bytes = tiny_model(GetParam(), other);
  Opened other_model(other_bytes);
  Started foreign(other_model);
  ASSERT_EQ(oxb_session_save(foreign.session, blob.data(), blob.size(), &error), OXB_OK);
  EXPECT_EQ(oxb_session_load(session.session, blob.data(), blob.size(), &error),
            OXB_STATE_MISMATCH);
  EXPECT_NE(std::strstr(error.text, "another model"), nullptr) << error.text;

  for (const auto& segment : some_segments(5, 8))
    EXPECT_EQ(session.feed(segment), twin.feed(segment));
}

TEST_P(SessionTest, ResultsDoNotDependOnTheNumberOfThreadsParallel) {
  Started one(opened_, 1), two(opened_, 2), four(opened_, 4);
  for (const auto& segment : some_segments(20, 9)) {
    const std::vector<float> expected = one.feed(segment);
    EXPECT_EQ(two.feed(segment), expected);
    EXPECT_EQ(four.feed(segment), expected);
  }
}

TEST_P(SessionTest, TheReferenceBackendGivesTheSameBits) {
  Started fast(opened_), reference(opened_, 1, 0, OXB_BACKEND_REFERENCE);
  for (const auto& segment : some_segments(40, 10)) {
    EXPECT_EQ(fast.feed(segment), reference.feed(segment));
  }
}

TEST_P(SessionTest, OneModelServesSessionsOnManyThreadsConcurrently) {
  constexpr size_t kSessions = 6;
  std::vector<std::vector<float>> results(kSessions);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kSessions; ++i) {
    threads.emplace_back([this, i, &results] {
      Started session(opened_);
      for (const auto& segment : some_segments(30, static_cast<uint32_t>(i % 2))) {
        results[i] = session.feed(segment);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 2; i < kSessions; ++i) EXPECT_EQ(results[i], results[i % 2]);
}

INSTANTIATE_TEST_SUITE_P(Weights, SessionTest, ::testing::Values("f32", "int8", "static"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace oxbow::testing
