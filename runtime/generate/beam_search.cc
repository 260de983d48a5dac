#include "runtime/generate/beam_search.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// What all beams but one start with: they are the same text, and only one may count.
constexpr float kCopy = -1e9f;
// Above every score a text can have.
constexpr double kNoneYet = 1e9;

/// Hands out memory front to back; over a null base it only counts.
class Cursor {
 public:
  Cursor(std::byte* base, uint64_t used) : base_(base), used_(used) {}

  template <typename T>
  std::span<T> take(uint64_t count) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    std::byte* place = base_ == nullptr ? nullptr : base_ + used_;
    used_ += count * sizeof(T);
    if (place == nullptr) return {};
    return {new (place) T[count](), static_cast<size_t>(count)};
  }
  uint64_t used() const { return used_; }

 private:
  std::byte* base_;
  uint64_t used_;
};

double stable_log(double x) {
  // x = 2^k m; ln m = 2 artanh((m - 1) / (m + 1)), whose argument is below 0.172: twelve terms.
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < 0.70710678118654752) {
    m *= 2.0;
    --k;
  }
  const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
  double sum = 0.0;
  for (int term = 25; term >= 1; term -= 2) sum = sum * s2 + 1.0 / term;
  return k * 0.69314718055994531 + 2.0 * s * sum;
}

}  // namespace

double stable_power(uint32_t base, double exponent) {
  if (exponent == 1.0) return base;
  const double y = exponent * stable_log(base);
  // e^y = 2^n e^r with |r| <= ln 2 / 2; the series to r^17 / 17!.
  const double n = std::floor(y / 0.69314718055994531 + 0.5);
  const double r = y - n * 0.69314718055994531;
  double sum = 1.0;
  for (int term = 17; term >= 1; --term) sum = 1.0 + sum * r / term;
  return std::ldexp(sum, static_cast<int>(n));
}

Status BeamSearch::check(const BeamRules& rules, Error* error) {
  const auto refuse = [&](const char* what, uint32_t value, uint32_t least, uint32_t most) {
    return fail(error, Status::kInvalidArgument, "beam search: %s is %u; expected %u to %u", what,
                value, least, most);
  };
  if (rules.vocabulary < 2 || rules.vocabulary > INT32_MAX) {
    return refuse("vocabulary", rules.vocabulary, 2, INT32_MAX);
  }
  if (rules.beams == 0 || rules.beams > kMaxBeams) {
    return refuse("beams", rules.beams, 1, kMaxBeams);
  }
  if (rules.n_best == 0 || rules.n_best > rules.beams) {
    return refuse("n_best", rules.n_best, 1, rules.beams);
  }
  if (rules.max_tokens < 2 || rules.max_tokens > kMaxTokens) {
    return refuse("max_tokens", rules.max_tokens, 2, kMaxTokens);
  }
  if (rules.min_tokens > rules.max_tokens) {
    return refuse("min_tokens", rules.min_tokens, 0, rules.max_tokens);
  }
  // Negated, so that NaN is refused too.
  if (!(std::fabs(rules.length_penalty) <= kMaxPenalty)) {
    return fail(error, Status::kInvalidArgument,
                "beam search: length_penalty is %g; expected %g to %g", rules.length_penalty,
                -kMaxPenalty, kMaxPenalty);
  }
  return Status::kOk;
}

uint64_t BeamSearch::lay_out(std::byte* base) {
  const uint64_t beams = rules_.beams, tokens = rules_.max_tokens;
  Cursor cursor(base, sizeof(BeamSearch));
  candidates_ = cursor.take<Candidate>(2 * beams);
  finished_ = cursor.take<Finished>(beams + 1);
  beams_ = cursor.take<Beam>(beams);
  next_ = cursor.take<Beam>(beams);
  history_ = cursor.take<Past>(tokens * beams);
  prompt_ = cursor.take<int32_t>(tokens);
  results_ = cursor.take<int32_t>(rules_.n_best * tokens);
  return cursor.used();
}

uint64_t BeamSearch::bytes(const BeamRules& rules) { return BeamSearch(rules).lay_out(nullptr); }

BeamSearch* BeamSearch::place(const BeamRules& rules, std::byte* memory) {
  auto* made = new (memory) BeamSearch(rules);
  made->lay_out(memory);
  return made;
}

void BeamSearch::begin(std::span<const int32_t> prompt) {
  std::copy(prompt.begin(), prompt.end(), prompt_.begin());
  prompt_count_ = static_cast<uint32_t>(prompt.size());
  generated_ = candidate_count_ = finished_count_ = result_count_ = 0;
  worst_ = kNoneYet;
  done_ = false;
  has_times_ = rules_.timestamps.hold(prompt);
  for (uint32_t i = 0; i < rules_.beams; ++i) {
    beams_[i] = {i == 0 ? 0.0f : kCopy, 0, prompt.back()};
  }
}

Status BeamSearch::to_logarithms(std::span<float> logits, Error* error) const {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] <= FLT_MAX) continue;
    return fail(error, Status::kInvalidArgument,
                "beam search: the logit of token %zu is %g; expected a number or -inf", i,
                static_cast<double>(logits[i]));
  }
  const float top = max_f32(logits.size(), kNever, [&](size_t i) { return logits[i]; });
  if (top < -FLT_MAX) {
    return fail(error, Status::kInvalidArgument,
                "beam search: all logits are -inf; no token is possible");
  }
  const float sum = sum_f32(logits.size(), [&](size_t i) { return exp_f32(logits[i] - top); });
  const float log_sum = log_f32(sum);
  for (float& logit : logits) logit = logit - top - log_sum;
  return Status::kOk;
}

void BeamSearch::forbid(uint32_t beam, std::span<float> logarithms) const {
  const auto known = [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < logarithms.size();
  };
  for (const int32_t token : rules_.forbidden) {
    // A text that cannot end would be no text.
    if (known(token) && token != rules_.end_token) logarithms[static_cast<size_t>(token)] = kNever;
  }
  for (const int32_t token : rules_.first_forbidden) {
    if (known(token) && generated_ == 0) logarithms[static_cast<size_t>(token)] = kNever;
  }
  if (has_times_) beams_[beam].times.forbid(rules_.timestamps, logarithms);
  if (known(rules_.end_token) && length() < rules_.min_tokens) {
    logarithms[static_cast<size_t>(rules_.end_token)] = kNever;
  }
  if (known(rules_.forced_last_token) && length() + 1 == rules_.max_tokens) {
    std::fill(logarithms.begin(), logarithms.end(), kNever);
    logarithms[static_cast<size_t>(rules_.forced_last_token)] = 0.0f;
  }
}

void BeamSearch::consider(const Candidate& candidate) {
  const bool full = candidate_count_ == candidates_.size();
  if (full && !(candidate.score > candidates_[candidate_count_ - 1].score)) return;
  uint32_t place = full ? candidate_count_ - 1 : candidate_count_++;
  for (; place > 0 && candidate.score > candidates_[place - 1].score; --place) {
    candidates_[place] = candidates_[place - 1];
  }
  candidates_[place] = candidate;
}

Status BeamSearch::add_row(uint32_t beam, std::span<float> logits, Error* error) {
  OXB_TRY(to_logarithms(logits, error));
  forbid(beam, logits);
  const uint32_t last = generated_ == 0 ? rules_.beams - 1 : beam;
  for (uint32_t b = beam; b <= last; ++b) {
    const float score = beams_[b].score;
    for (size_t token = 0; token < logits.size(); ++token) {
      consider({logits[token] + score, b, static_cast<int32_t>(token)});
    }
  }
  return Status::kOk;
}

void BeamSearch::finish_text(double sum, uint32_t beam) {
  const double score = sum / stable_power(length(), rules_.length_penalty);
  if (finished_count_ == rules_.beams && !(score > worst_)) return;
  finished_[finished_count_++] = {score, generated_, beam, length()};
  if (finished_count_ <= rules_.beams) {
    worst_ = std::min(score, worst_);
    return;
  }
  // One too many: the worst goes, of equal ones the oldest.
  uint32_t worst = 0;
  for (uint32_t i = 1; i < finished_count_; ++i) {
    if (finished_[i].score < finished_[worst].score) worst = i;
  }
  std::copy(finished_.begin() + worst + 1, finished_.begin() + finished_count_,
            finished_.begin() + worst);
  --finished_count_;
  worst_ = finished_[0].score;
  for (uint32_t i = 1; i < finished_count_; ++i) worst_ = std::min(worst_, finished_[i].score);
}

bool BeamSearch::is_done(double best_sum) const {
  if (finished_count_ < rules_.beams) return false;
  // One beam takes the likeliest token, and so ends where that is the end.
  if (rules_.stop == BeamStop::kEnoughTexts || rules_.beams == 1) return true;
  const bool longest = rules_.stop == BeamStop::kNoneBetter && rules_.length_penalty > 0.0;
  const uint32_t reached = longest ? rules_.max_tokens : length() + 1;
  return worst_ >= best_sum / stable_power(reached, rules_.length_penalty);
}

void BeamSearch::advance() {
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < candidate_count_ && count < rules_.beams; ++rank) {
    const Candidate& candidate = candidates_[rank];
    if (candidate.token != rules_.end_token) {
      next_[count] = {candidate.score, candidate.beam, candidate.token,
                      beams_[candidate.beam].times};
      if (has_times_) next_[count].times.add(rules_.timestamps, candidate.token);
      ++count;
    } else if (rank < rules_.beams) {
      finish_text(static_cast<double>(candidate.score), candidate.beam);
    }
  }
  done_ = is_done(static_cast<double>(candidates_[0].score));
  candidate_count_ = 0;
  for (uint32_t i = 0; i < count; ++i) {
    history_[size_t{generated_} * rules_.beams + i] = {next_[i].source, next_[i].token};
  }
  std::swap(beams_, next_);
  ++generated_;
  if (!done_ && length() == rules_.max_tokens) {
    for (uint32_t i = 0; i < rules_.beams; ++i) {
      finish_text(static_cast<double>(beams_[i].score), i);
    }
    done_ = true;
  }
  if (done_) collect_results();
}

void BeamSearch::collect_results() {
  // The newest of equal ones first.
  std::reverse(finished_.begin(), finished_.begin() + finished_count_);
  for (uint32_t i = 1; i < finished_count_; ++i) {
    for (uint32_t j = i; j > 0 && finished_[j].score > finished_[j - 1].score; --j) {
      std::swap(finished_[j], finished_[j - 1]);
    }
  }
  result_count_ = std::min(rules_.n_best, finished_count_);
  for (uint32_t i = 0; i < result_count_; ++i) {
    Finished& text = finished_[i];
    int32_t* tokens = results_.data() + size_t{i} * rules_.max_tokens;
    std::copy(prompt_.begin(), prompt_.begin() + prompt_count_, tokens);
    uint32_t beam = text.beam;
    for (uint32_t g = text.generated; g > 0; --g) {
      const Past& past = history_[size_t{g - 1} * rules_.beams + beam];
      tokens[prompt_count_ + g - 1] = past.token;
      beam = past.source;
    }
    if (text.length < rules_.max_tokens && rules_.end_token >= 0) {
      tokens[text.length++] = rules_.end_token;
    }
  }
}

std::span<const int32_t> BeamSearch::result(uint32_t index) const {
  return {results_.data() + size_t{index} * rules_.max_tokens, finished_[index].length};
}

float BeamSearch::result_score(uint32_t index) const {
  return static_cast<float>(finished_[index].score);
}

}  // namespace oxbow
