#pragma once

// The likeliest continuations of a text, several at a time. This is the bookkeeping alone: rows of
// logits come in, texts and tokens to try next go out, and no model is known here. It follows Hugging
// Face transformers 4.33 (BeamSearchScorer) to the choice of every token:
//
//   - a beam's score is the sum of the logarithms of its tokens' probabilities. Each round looks at
//     the 2 * beams likeliest continuations of all beams; the first `beams` that do not end go on,
//     those among the first `beams` that end are finished texts;
//   - a finished text's score is that sum / length ^ length_penalty, the length with the prompt and
//     without the end token. The best `beams` of them are kept;
//   - forbidden tokens, and the end before min_tokens, get -inf after the logarithm, so that they
//     take no part in the normalisation; before the last token all but a forced one do, which gets 0;
//   - so do tokens that the rules of times forbid (timestamps.h), where those hold.
//
// Arithmetic is our own and in a fixed order, so that equal logits give equal texts and scores on
// every machine. Equal scores: the lower beam first, then the lower token.
//
//   memory:  BeamSearch | Candidate[2B] | Finished[B + 1] | Beam[2B] | history[T * B] | prompt[T] |
//            results[n_best * T]

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/generate/timestamps.h"

namespace oxbow {

/// What ends a search before all texts have their greatest length.
enum class BeamStop {
  /// As many finished texts as beams, none worse than the likeliest open one is now.
  kUnlikelyBetter,
  /// As many finished texts as beams.
  kEnoughTexts,
  /// As many finished texts as beams, none worse than any open one can still become.
  kNoneBetter,
};

struct BeamRules {
  uint32_t vocabulary = 0;
  uint32_t beams = 1;
  uint32_t n_best = 1;
  /// Of a text, with its prompt and its end.
  uint32_t max_tokens = 0;
  uint32_t min_tokens = 0;
  double length_penalty = 1.0;
  BeamStop stop = BeamStop::kUnlikelyBetter;
  /// -1: none.
  int32_t end_token = -1;
  int32_t forced_last_token = -1;
  /// Both must outlive the search. The second are those that no text begins with, behind its prompt.
  std::span<const int32_t> forbidden, first_forbidden;
  TimestampRules timestamps;
};

class BeamSearch {
 public:
  static constexpr uint32_t kMaxBeams = 64;
  static constexpr uint32_t kMaxTokens = 1u << 20;
  static constexpr double kMaxPenalty = 10.0;

  static Status check(const BeamRules& rules, Error* error);
  /// What place() needs for rules that were checked; below 2^31.
  static uint64_t bytes(const BeamRules& rules);
  /// `memory` is aligned for any type.
  static BeamSearch* place(const BeamRules& rules, std::byte* memory);

  /// Starts anew with one text of 1 to max_tokens - 1 tokens.
  void begin(std::span<const int32_t> prompt);

  /// How many beams need a row: the first round has one text for all of them.
  uint32_t rows_wanted() const { return generated_ == 0 ? 1 : rules_.beams; }
  /// Takes the logits of what follows the text of `beam`, and overwrites them. Beams in order.
  Status add_row(uint32_t beam, std::span<float> logits, Error* error);
  /// Ends a round: when not done(), each beam continues the text that source() had with token().
  void advance();
  bool done() const { return done_; }
  uint32_t source(uint32_t beam) const { return beams_[beam].source; }
  int32_t token(uint32_t beam) const { return beams_[beam].token; }

  /// When done: the best texts, the best first.
  uint32_t result_count() const { return result_count_; }
  std::span<const int32_t> result(uint32_t index) const;
  float result_score(uint32_t index) const;

 private:
  struct Candidate {
    float score;
    uint32_t beam;
    int32_t token;
  };
  struct Beam {
    float score;
    uint32_t source;
    int32_t token;
    TextTimes times{};
  };
  /// How a beam came by its token in one round.
  struct Past {
    uint32_t source;
    int32_t token;
  };
  /// A text, as the beam it was in after so many rounds.
  struct Finished {
    double score;
    uint32_t generated;
    uint32_t beam;
    uint32_t length;
  };

  explicit BeamSearch(const BeamRules& rules) : rules_(rules) {}
  /// Takes its arrays from behind itself; over a null base it only counts. Returns all bytes.
  uint64_t lay_out(std::byte* base);
  uint32_t length() const { return prompt_count_ + generated_; }
  Status to_logarithms(std::span<float> logits, Error* error) const;
  void forbid(uint32_t beam, std::span<float> logarithms) const;
  void consider(const Candidate& candidate);
  void finish_text(double sum, uint32_t beam);
  bool is_done(double best_sum) const;
  void collect_results();

  BeamRules rules_;
  std::span<Candidate> candidates_;
  uint32_t candidate_count_ = 0;
  /// In the order they were finished.
  std::span<Finished> finished_;
  uint32_t finished_count_ = 0;
  double worst_ = 0.0;
  std::span<Beam> beams_;
  std::span<Beam> next_;
  std::span<Past> history_;
  std::span<int32_t> prompt_;
  uint32_t prompt_count_ = 0;
  bool has_times_ = false;
  uint32_t generated_ = 0;
  bool done_ = true;
  std::span<int32_t> results_;
  uint32_t result_count_ = 0;
};

/// base ^ exponent with a relative error below 1e-13, the same bits on every machine.
double stable_power(uint32_t base, double exponent);

}  // namespace oxbow
