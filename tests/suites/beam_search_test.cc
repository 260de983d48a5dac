// A beam search as an application uses it: over sessions, through the C interface.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

template <typename T>
T value(oxb::Expected<T> expected) {
  if (!expected.ok()) throw std::runtime_error(expected.status().text());
  return std::move(*expected);
}

oxb_beam_options beam_options(uint32_t beams, uint32_t n_best, uint32_t max_tokens) {
  oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
  options.beams = beams;
  options.n_best = n_best;
  options.max_tokens = max_tokens;
  return options;
}

struct Text {
  std::vector<int32_t> tokens;
  float score;
  bool operator==(const Text&) const = default;
};

std::vector<Text> texts(const oxb::BeamSearch& search) {
  std::vector<Text> out;
  for (size_t i = 0; i < search.count(); ++i) {
    const oxb::BeamSearch::Text text = value(search.result(i));
    out.push_back({{text.tokens.begin(), text.tokens.end()}, text.score});
  }
  return out;
}

/// What a fresh stream thinks of a text whose first `given` tokens are a prompt.
double score_of(oxb::Session& session, const std::vector<int32_t>& text, size_t given,
                uint32_t vocabulary) {
  std::vector<float> logits(vocabulary);
  double sum = 0.0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    EXPECT_TRUE(session.run({&text[i], 1}, logits).ok());
    if (i + 1 < given) continue;
    double total = 0.0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    sum += static_cast<double>(logits[static_cast<size_t>(text[i + 1])]) - std::log(total);
  }
  return sum / static_cast<double>(text.size());
}

class BeamSearchOnSessions : public ::testing::TestWithParam<const char*> {
 protected:
  BeamSearchOnSessions()
      : bytes_(GetParam(), std::string(GetParam()) == "f32" ? "f32" : "dynamic"),
        model_(value(oxb::Model::open(bytes_.bytes()))) {}

  oxb::Session session(uint32_t threads = 1) {
    oxb::SessionOptions options;
    options.threads = threads;
    return value(oxb::Session::create(model_, options));
  }

  TinyModel bytes_;
  oxb::Model model_;
};

TEST_P(BeamSearchOnSessions, EveryTextHasTheScoreThatAFreshStreamGivesIt) {
  oxb::Session searching = session(), fresh = session();
  oxb::BeamSearch search = value(oxb::BeamSearch::create(searching, beam_options(5, 5, 24)));
  const std::vector<int32_t> prompt = {1, 2, 3};
  for (int again = 0; again < 2; ++again) {
    searching.reset();
    ASSERT_TRUE(search.run(prompt).ok());
    ASSERT_EQ(search.count(), 5u);
    float last = INFINITY;
    for (const Text& text : texts(search)) {
      EXPECT_EQ(text.tokens.size(), 24u);
      EXPECT_LE(text.score, last);
      last = text.score;
      fresh.reset();
      // Sums of 21 logarithms, each within a few units in the last place of its size.
      EXPECT_NEAR(score_of(fresh, text.tokens, 3, model_.info().vocabulary), text.score, 2e-5);
    }
  }
}

TEST_P(BeamSearchOnSessions, ThreadsAndEarlierTextsChangeNothing) {
  oxb::Session one = session(), three = session(3);
  oxb::BeamSearch first = value(oxb::BeamSearch::create(one, beam_options(4, 4, 16)));
  oxb::BeamSearch second = value(oxb::BeamSearch::create(three, beam_options(4, 4, 16)));
  ASSERT_TRUE(first.run(std::vector<int32_t>{1}).ok());
  ASSERT_TRUE(second.run(std::vector<int32_t>{4, 4}).ok());
  three.reset();
  ASSERT_TRUE(second.run(std::vector<int32_t>{1}).ok());
  EXPECT_EQ(texts(first), texts(second));
}

TEST_P(BeamSearchOnSessions, OneBeamIsTheLikeliestTokenEachTime) {
  oxb::Session searching = session(), greedy = session();
  oxb::BeamSearch search = value(oxb::BeamSearch::create(searching, beam_options(1, 1, 12)));
  ASSERT_TRUE(search.run(std::vector<int32_t>{2}).ok());
  std::vector<int32_t> expected = {2};
  std::vector<float> logits(model_.info().vocabulary);
  while (expected.size() < 12) {
    ASSERT_TRUE(greedy.run({&expected.back(), 1}, logits).ok());
    expected.push_back(
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  EXPECT_EQ(texts(search)[0].tokens, expected);
}

TEST_P(BeamSearchOnSessions, MemoryThatIsTooSmallIsRefusedAtAnyAddress) {
  oxb::Session searching = session();
  const oxb_beam_options options = beam_options(3, 1, 8);
  size_t needed = 0;
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_beam_search_bytes(searching.get(), &options, &needed, &error), OXB_OK);
  oxb_beam_search* search = nullptr;
  for (size_t bytes = 1; bytes < needed; bytes += bytes + 131 < needed ? 131 : 1) {
    std::vector<std::byte> memory(bytes);  // exact, so that a sanitizer sees a byte too many
    EXPECT_EQ(
        oxb_beam_search_create(searching.get(), &options, memory.data(), bytes, &search, &error),
        OXB_BUFFER_TOO_SMALL);
    EXPECT_EQ(search, nullptr);
  }
  for (size_t shift = 0; shift < 64; shift += 7) {
    std::vector<std::byte> memory(needed + shift);
    ASSERT_EQ(oxb_beam_search_create(searching.get(), &options, memory.data() + shift, needed,
                                     &search, &error),
              OXB_OK)
        << error.text;
    const int32_t prompt = 1;
    searching.reset();
    EXPECT_EQ(oxb_beam_search_count(search), 0u);
    EXPECT_EQ(oxb_beam_search_run(search, &prompt, 1, &error), OXB_OK) << error.text;
    EXPECT_EQ(oxb_beam_search_count(search), 1u);
  }
}

TEST_P(BeamSearchOnSessions, HostileOptionsAreRefusedWithWords) {
  oxb::Session searching = session();
  const auto refused = [&](auto edit) {
    oxb_beam_options options = beam_options(3, 1, 8);
    edit(options);
    size_t bytes = 0;
    oxb_error error = OXB_ERROR_INIT;
    const oxb_status status = oxb_beam_search_bytes(searching.get(), &options, &bytes, &error);
    EXPECT_NE(error.text[0], '\0');
    oxb_beam_search* search = nullptr;
    std::vector<std::byte> memory(1 << 16);
    EXPECT_EQ(oxb_beam_search_create(searching.get(), &options, memory.data(), memory.size(),
                                     &search, &error),
              status);
    return status == OXB_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.beams = 0; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.beams = UINT32_MAX; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.n_best = 0; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.n_best = UINT32_MAX; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.max_tokens = 1; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.max_tokens = UINT32_MAX; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.max_tokens = 0; })) << "the stream is endless";
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.min_tokens = 9; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.length_penalty = NAN; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.length_penalty = 1e300; }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.stop = static_cast<oxb_beam_stop>(3); }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.stop = static_cast<oxb_beam_stop>(-1); }));
  EXPECT_TRUE(refused([](oxb_beam_options& o) { o.size = 8; }));
}

TEST_P(BeamSearchOnSessions, PromptsWithoutMeaningAreRefused) {
  oxb::Session searching = session();
  oxb::BeamSearch search = value(oxb::BeamSearch::create(searching, beam_options(2, 1, 4)));
  EXPECT_EQ(search.run().code(), OXB_INVALID_ARGUMENT) << "the model has no start token";
  EXPECT_EQ(search.run(std::vector<int32_t>{1, 1, 1, 1}).code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(search.run(std::vector<int32_t>{1, 7}).code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(search.count(), 0u);
  EXPECT_TRUE(search.run(std::vector<int32_t>{1, 1, 1}).ok());
  EXPECT_EQ(oxb_beam_search_run(search.get(), nullptr, 1, nullptr), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(oxb_beam_search_run(nullptr, nullptr, 0, nullptr), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(search.result(1).status().code(), OXB_INVALID_ARGUMENT);
}

INSTANTIATE_TEST_SUITE_P(Types, BeamSearchOnSessions, ::testing::Values("f32", "int8"));

TEST(BeamSearchOnTranslators, TextsEndWhereTheStreamDoes) {
  const std::string path = golden_model("marian/ma1", {});
  const oxb::Model model = value(oxb::Model::open(path.c_str()));
  oxb::Session session = value(oxb::Session::create(model));
  const std::vector<int32_t> source = {3, 14, 15, 9, 26, 0};
  ASSERT_TRUE(session.encode(source).ok());
  // 40 tokens can be fed, so that a text has one more at most.
  EXPECT_EQ(oxb::BeamSearch::create(session, beam_options(3, 1, 42)).status().code(),
            OXB_INVALID_ARGUMENT);
  oxb::BeamSearch search = value(oxb::BeamSearch::create(session, beam_options(3, 3, 41)));
  ASSERT_TRUE(search.run().ok());
  const std::vector<Text> first = texts(search);
  for (const Text& text : first) {
    EXPECT_EQ(text.tokens[0], 83);
    EXPECT_EQ(text.tokens.back(), 0);
    EXPECT_EQ(std::count(text.tokens.begin() + 1, text.tokens.end(), 83), 0) << "forbidden";
  }
  EXPECT_EQ(search.run().code(), OXB_STREAM_FULL) << "the stream holds a text";
  ASSERT_TRUE(session.encode(source).ok());
  ASSERT_TRUE(search.run().ok());
  EXPECT_EQ(texts(search), first);
}

}  // namespace
}  // namespace oxbow::testing
