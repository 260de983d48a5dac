#pragma once

// How far the choices of one model are from those of another, its judge, over many rows of logits. Every mean comes with
// its standard error, as if rows were independent.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace oxbow {

/// Natural logarithm of the sum of exponentials.
double log_sum_exp(std::span<const float> logits);

struct Estimate {
  double value = 0;
  double error = 0;
};

/// "0.00312 ± 0.00014", of numbers printed with `format`.
std::string estimate_text(const Estimate& estimate, const char* format, double factor = 1);

class Divergence {
 public:
  /// Rows of the judge and of the other. `next` is the token that followed, or negative.
  void add(std::span<const float> judge, std::span<const float> other, int32_t next);

  size_t rows() const { return static_cast<size_t>(kl_.count); }
  /// Of them how many had a token that followed.
  size_t predicted() const { return static_cast<size_t>(surprise_.count); }

  double cosine() const { return cosine_.mean(); }
  double largest_difference() const { return largest_; }
  /// Kullback-Leibler divergence from the judge, in nats.
  Estimate kl() const;
  /// How often both have the same most likely token.
  Estimate same_top() const { return top_.estimate(); }
  /// Where they differ: how much likelier the judge finds its own token than the other's, in nats. Small numbers are ties
  /// that any rounding may decide.
  Estimate overturned_lead() const { return lead_.estimate(); }
  double largest_overturned_lead() const { return largest_lead_; }
  /// Root mean square of how much the probability of the token that followed has changed; where none is known, of
  /// the judge's most likely token.
  Estimate rms_delta_p() const;
  double judge_perplexity() const;
  double perplexity() const;
  /// Perplexity over the judge's, minus 1.
  Estimate perplexity_change() const;

 private:
  struct Sum {
    double count = 0, sum = 0, squares = 0;
    void add(double value) {
      ++count;
      sum += value;
      squares += value * value;
    }
    double mean() const { return count > 0 ? sum / count : 0; }
    Estimate estimate() const;
  };
  Sum cosine_, kl_, top_, lead_, delta_p_, judge_surprise_, surprise_, surprise_change_;
  double largest_ = 0, largest_lead_ = 0;
};

}  // namespace oxbow
