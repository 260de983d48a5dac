#pragma once

// Picks the next token from logits: the inside of oxb_sampler, which oxbow.h documents.
//
// Same seed and same logits give the same tokens on every machine: the exponential is our own, sums
// are taken in double in a fixed order, and the random numbers come from integer arithmetic.
//
//   memory:  oxb_sampler | float logits[V] | uint32 candidates[V] | int32 window[W]

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"

struct oxb_sampler {
 public:
  /// Sets *bytes to what place() needs.
  static oxbow::Status measure(uint32_t vocabulary, const oxb_sampler_options& options,
                               size_t* bytes, oxbow::Error* error);
  /// `memory` needs no alignment.
  static oxbow::Status place(uint32_t vocabulary, const oxb_sampler_options& options, void* memory,
                             size_t bytes, oxb_sampler** sampler, oxbow::Error* error);

  void accept(int32_t token);
  size_t vocabulary() const { return logits_.size(); }
  /// The random numbers begin again, and no token was seen.
  void restart(uint64_t seed);

  /// The random numbers and the window as bytes, to save them.
  static size_t saved_bytes(const oxb_sampler_options& options);
  void save(std::byte* saved) const;
  oxbow::Status load(const std::byte* saved, oxbow::Error* error);

  oxbow::Status pick(const float* logits, int32_t* token, oxbow::Error* error);

 private:
  struct Layout;
  struct Saved;

  oxb_sampler() = default;
  oxbow::Status copy_and_penalise(const float* logits, oxbow::Error* error);
  /// A number in [0, 1) with 53 bits.
  double uniform();
  /// Probability of a token up to a factor: e^((logit - most) / temperature).
  float weight(uint32_t id) const;
  /// Brings the most likely tokens to the front of candidates_, in order of likelihood; returns how
  /// many of them top_k and top_p keep, and sets *total to the sum of their weights.
  size_t keep_most_likely(double* total);

  oxb_sampler_options options_;
  uint64_t random_ = 0;
  std::span<float> logits_;
  std::span<uint32_t> candidates_;
  /// The last tokens, a ring.
  std::span<int32_t> window_;
  size_t window_count_ = 0;
  size_t window_next_ = 0;
  /// The largest of logits_.
  float most_ = 0.0f;
  uint32_t most_id_ = 0;
};
