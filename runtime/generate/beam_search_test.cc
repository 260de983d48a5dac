#include "runtime/generate/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace oxbow {
namespace {

using Text = std::vector<int32_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A language model: logits that depend on the whole text and on nothing else.
std::vector<float> logits_after(const Text& text, uint32_t vocabulary, uint32_t seed) {
  uint64_t state = seed + 1;
  for (const int32_t token : text) {
    state = (state ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15ull;
    state ^= state >> 29;
  }
  std::mt19937_64 random(state);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) logit = static_cast<float>(random() >> 40) * 0x1p-22f - 2.0f;
  return logits;
}

struct Scored {
  double score;
  Text text;
};

/// A search in exactly the memory it asked for.
class Search {
 public:
  explicit Search(const BeamRules& rules) : vocabulary_(rules.vocabulary), beams_(rules.beams) {
    Error error;
    EXPECT_EQ(BeamSearch::check(rules, &error), Status::kOk) << error.text;
    const uint64_t bytes = BeamSearch::bytes(rules);
    memory_ = std::make_unique<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1);
    search_ = BeamSearch::place(rules, reinterpret_cast<std::byte*>(memory_.get()));
  }

  std::vector<Scored> run(const Text& prompt, uint32_t seed) {
    std::vector<Text> texts(beams_, prompt);
    Error error;
    search_->begin(prompt);
    while (true) {
      for (uint32_t beam = 0; beam < search_->rows_wanted(); ++beam) {
        std::vector<float> logits = logits_after(texts[beam], vocabulary_, seed);
        EXPECT_EQ(search_->add_row(beam, logits, &error), Status::kOk) << error.text;
      }
      search_->advance();
      if (search_->done()) break;
      const std::vector<Text> before = texts;
      for (uint32_t beam = 0; beam < beams_; ++beam) {
        texts[beam] = before[search_->source(beam)];
        texts[beam].push_back(search_->token(beam));
      }
    }
    std::vector<Scored> results;
    for (uint32_t i = 0; i < search_->result_count(); ++i) {
      const std::span<const int32_t> text = search_->result(i);
      results.push_back(
          {static_cast<double>(search_->result_score(i)), {text.begin(), text.end()}});
    }
    return results;
  }
  BeamSearch& inner() { return *search_; }

 private:
  uint32_t vocabulary_, beams_;
  std::unique_ptr<std::max_align_t[]> memory_;
  BeamSearch* search_ = nullptr;
};

/// Logarithms of probabilities after the rules, in double.
std::vector<double> allowed(const BeamRules& rules, const Text& text, uint32_t seed) {
  const std::vector<float> logits = logits_after(text, rules.vocabulary, seed);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<double> out;
  for (const float logit : logits) out.push_back(static_cast<double>(logit) - std::log(sum));
  const auto at = [&](int32_t token) -> double& { return out[static_cast<size_t>(token)]; };
  for (const int32_t token : rules.forbidden) {
    if (token != rules.end_token) at(token) = -INFINITY;
  }
  if (rules.end_token >= 0 && text.size() < rules.min_tokens) at(rules.end_token) = -INFINITY;
  if (rules.forced_last_token >= 0 && text.size() + 1 == rules.max_tokens) {
    std::fill(out.begin(), out.end(), -INFINITY);
    at(rules.forced_last_token) = 0.0;
  }
  return out;
}

/// The same search the plain way: whole texts, one sort per round, nothing in place.
std::vector<Scored> plain_search(const BeamRules& rules, const Text& prompt, uint32_t seed) {
  std::vector<Scored> beams(rules.beams, {-1e9, prompt});
  beams[0].score = 0.0;
  std::vector<Scored> finished;
  const auto finish = [&](double sum, const Text& text) {
    const auto worse = [](const Scored& a, const Scored& b) { return a.score < b.score; };
    finished.push_back(
        {sum / std::pow(static_cast<double>(text.size()), rules.length_penalty), text});
    if (finished.size() <= rules.beams) return;
    // The newcomer only displaces what is worse than itself.
    const auto lowest = std::min_element(finished.begin(), finished.end() - 1, worse);
    finished.erase(finished.back().score > lowest->score ? lowest : finished.end() - 1);
  };
  bool done = false;
  while (!done && beams[0].text.size() < rules.max_tokens) {
    std::vector<Scored> candidates;
    for (const Scored& beam : beams) {
      const std::vector<double> logarithms = allowed(rules, beam.text, seed);
      for (size_t token = 0; token < logarithms.size(); ++token) {
        // In float: copies of a beam are so far down that all of them are equal there.
        const float sum = static_cast<float>(logarithms[token]) + static_cast<float>(beam.score);
        candidates.push_back({static_cast<double>(sum), beam.text});
        candidates.back().text.push_back(static_cast<int32_t>(token));
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
    candidates.resize(2 * rules.beams);
    const size_t length = beams[0].text.size();
    beams.clear();
    for (size_t rank = 0; rank < candidates.size() && beams.size() < rules.beams; ++rank) {
      Scored& candidate = candidates[rank];
      if (candidate.text.back() != rules.end_token) {
        beams.push_back(candidate);
      } else if (rank < rules.beams) {
        finish(candidate.score, Text(candidate.text.begin(), candidate.text.end() - 1));
      }
    }
    if (finished.size() < rules.beams) continue;
    double worst = kInfinity;
    for (const Scored& text : finished) worst = std::min(worst, text.score);
    const bool longest = rules.stop == BeamStop::kNoneBetter && rules.length_penalty > 0.0;
    const double reached = static_cast<double>(longest ? rules.max_tokens : length + 1);
    done = rules.stop == BeamStop::kEnoughTexts || rules.beams == 1 ||
           worst >= candidates[0].score / std::pow(reached, rules.length_penalty);
  }
  if (!done) {
    for (const Scored& beam : beams) finish(beam.score, beam.text);
  }
  std::stable_sort(finished.begin(), finished.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  finished.resize(rules.n_best);
  for (Scored& result : finished) {
    if (result.text.size() < rules.max_tokens && rules.end_token >= 0) {
      result.text.push_back(rules.end_token);
    }
  }
  return finished;
}

BeamRules some_rules() {
  BeamRules rules;
  rules.vocabulary = 6;
  rules.beams = 3;
  rules.n_best = 3;
  rules.max_tokens = 8;
  rules.end_token = 2;
  return rules;
}

TEST(BeamSearch, FindsWhatThePlainSearchFinds) {
  std::mt19937 random(11);
  const int32_t forbidden[] = {1, 4};
  size_t ended = 0;
  for (uint32_t round = 0; round < 3000; ++round) {
    BeamRules rules;
    rules.vocabulary = 5 + random() % 8;
    rules.beams = 1 + random() % 6;
    rules.n_best = 1 + random() % rules.beams;
    rules.max_tokens = 3 + random() % 9;
    rules.min_tokens = random() % 3 == 0 ? random() % rules.max_tokens : 0;
    const double penalties[] = {1.0, 0.0, 0.6, 2.0, -1.0};
    rules.length_penalty = penalties[random() % 5];
    rules.stop = static_cast<BeamStop>(random() % 3);
    if (random() % 5 != 0) rules.end_token = static_cast<int32_t>(random() % 5);
    if (random() % 3 == 0) rules.forced_last_token = rules.end_token;
    // With few tokens left, impossible texts compete with each other, in an order of no meaning.
    if (random() % 3 == 0 && rules.vocabulary > 4 + 2) rules.forbidden = forbidden;
    const Text prompt(1 + random() % 2, 3);
    Search search(rules);
    const std::vector<Scored> found = search.run(prompt, round);
    const std::vector<Scored> expected = plain_search(rules, prompt, round);
    ASSERT_EQ(found.size(), expected.size()) << "round " << round;
    for (size_t i = 0; i < found.size(); ++i) {
      if (expected[i].score < -1e6) continue;  // A copy of another beam, or impossible.
      EXPECT_EQ(found[i].text, expected[i].text) << "round " << round << ", text " << i;
      // Ten sums of logarithms whose errors are a few units in the last place of their sizes.
      EXPECT_NEAR(found[i].score, expected[i].score,
                  1e-5 * std::max(1.0, std::fabs(expected[i].score)))
          << "round " << round << ", text " << i;
      ended += found[i].text.size() < rules.max_tokens;
    }
  }
  EXPECT_GT(ended, 500u) << "too few texts ended by themselves to say anything";
}

/// Every text there is, by the rules' score.
void add_all_texts(const BeamRules& rules, const Text& text, double sum, uint32_t seed,
                   std::vector<Scored>& all) {
  const std::vector<double> logarithms = allowed(rules, text, seed);
  for (int32_t token = 0; token < static_cast<int32_t>(rules.vocabulary); ++token) {
    const double next = sum + logarithms[static_cast<size_t>(token)];
    Text longer = text;
    longer.push_back(token);
    if (token == rules.end_token) {
      all.push_back(
          {next / std::pow(static_cast<double>(text.size()), rules.length_penalty), longer});
    } else if (longer.size() == rules.max_tokens) {
      all.push_back(
          {next / std::pow(static_cast<double>(longer.size()), rules.length_penalty), longer});
    } else {
      add_all_texts(rules, longer, next, seed, all);
    }
  }
}

TEST(BeamSearch, WithRoomForAllTextsTheBestOfAllIsFound) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    BeamRules rules;
    rules.vocabulary = 3;
    rules.beams = 32;
    rules.max_tokens = 5;
    rules.end_token = 0;
    rules.length_penalty = seed % 2 == 0 ? 1.0 : 0.5;
    rules.stop = BeamStop::kNoneBetter;
    std::vector<Scored> all;
    add_all_texts(rules, {1}, 0.0, seed, all);
    const auto best = std::max_element(
        all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.score < b.score; });
    EXPECT_EQ(Search(rules).run({1}, seed)[0].text, best->text) << "seed " << seed;
  }
}

TEST(BeamSearch, OneBeamTakesTheLikeliestTokenEachTime) {
  BeamRules rules = some_rules();
  rules.beams = rules.n_best = 1;
  rules.max_tokens = 30;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Text text = {3};
    while (text.size() < rules.max_tokens && (text.size() == 1 || text.back() != 2)) {
      const std::vector<float> logits = logits_after(text, rules.vocabulary, seed);
      text.push_back(
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    EXPECT_EQ(Search(rules).run({3}, seed)[0].text, text) << "seed " << seed;
  }
}

TEST(BeamSearch, ASecondTextIsNotTouchedByTheFirst) {
  Search used(some_rules());
  used.run({3, 4, 5}, 1);
  const std::vector<Scored> again = used.run({1}, 2);
  const std::vector<Scored> fresh = Search(some_rules()).run({1}, 2);
  ASSERT_EQ(again.size(), fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    EXPECT_EQ(again[i].text, fresh[i].text);
    EXPECT_EQ(again[i].score, fresh[i].score);
  }
}

TEST(BeamSearch, TheLongestPromptLeavesOneToken) {
  Search search(some_rules());
  const std::vector<Scored> found = search.run({1, 3, 4, 5, 1, 3, 4}, 1);
  for (const Scored& text : found) EXPECT_EQ(text.text.size(), 8u);
}

TEST(BeamSearch, ImpossibleLogitsAreRefused) {
  Search search(some_rules());
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    const int32_t prompt = 1;
    search.inner().begin({&prompt, 1});
    std::vector<float> logits(6, 0.5f);
    logits[4] = wrong;
    Error error;
    EXPECT_EQ(search.inner().add_row(0, logits, &error), Status::kInvalidArgument);
    EXPECT_NE(std::string(error.text).find("token 4"), std::string::npos) << error.text;
  }
  std::vector<float> none(6, -kInfinity);
  Error error;
  EXPECT_EQ(search.inner().add_row(0, none, &error), Status::kInvalidArgument);
}

TEST(BeamSearch, RulesWithoutMeaningAreRefused) {
  const auto refused = [](auto edit) {
    BeamRules rules = some_rules();
    edit(rules);
    Error error;
    const Status status = BeamSearch::check(rules, &error);
    EXPECT_NE(error.text[0], '\0');
    return status == Status::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](BeamRules& r) { r.beams = 0; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.beams = 65; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.beams = UINT32_MAX; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.n_best = 0; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.n_best = 4; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.max_tokens = 1; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.max_tokens = UINT32_MAX; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.min_tokens = 9; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.vocabulary = 1; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.vocabulary = UINT32_MAX; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.length_penalty = NAN; }));
  EXPECT_TRUE(refused([](BeamRules& r) { r.length_penalty = -11.0; }));
}

TEST(BeamSearch, TokensTheModelDoesNotHaveAreNeitherForbiddenNorForced) {
  BeamRules rules = some_rules();
  const int32_t forbidden[] = {-1, 6, INT32_MAX};
  rules.forbidden = forbidden;
  rules.end_token = rules.forced_last_token = 1000;
  BeamRules plain = some_rules();
  plain.end_token = -1;
  const std::vector<Scored> found = Search(rules).run({1}, 5), wanted = Search(plain).run({1}, 5);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(found[i].text, wanted[i].text);
}

TEST(StablePower, IsThePower) {
  for (const uint32_t base : {1u, 2u, 3u, 7u, 12u, 100u, 511u, 4096u, 1048576u}) {
    for (const double exponent : {-10.0, -1.0, -0.3, 0.0, 0.5, 0.6, 0.8, 1.0, 1.2, 2.0, 10.0}) {
      const double expected = std::pow(static_cast<double>(base), exponent);
      EXPECT_NEAR(stable_power(base, exponent) / expected, 1.0, 1e-13) << base << "^" << exponent;
    }
  }
  EXPECT_EQ(stable_power(1, 0.7), 1.0);
  EXPECT_EQ(stable_power(37, 1.0), 37.0);
}

}  // namespace
}  // namespace oxbow
