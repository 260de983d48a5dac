#include "runtime/generate/sampler.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/base/math.h"

using oxbow::Error;
using oxbow::fail;
using oxbow::Status;

namespace {

constexpr uint32_t kMaxWindow = 1u << 20;

Status check_options(const oxb_sampler_options& options, Error* error) {
  // Negated comparisons, so that NaN is refused too.
  if (!(options.temperature >= 0.0f && options.temperature <= FLT_MAX)) {
    return fail(error, Status::kInvalidArgument, "sampler: temperature is %g; expected 0 or more",
                static_cast<double>(options.temperature));
  }
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    return fail(error, Status::kInvalidArgument, "sampler: top_p is %g; expected above 0, up to 1",
                static_cast<double>(options.top_p));
  }
  if (!(options.repetition_penalty > 0.0f && options.repetition_penalty <= FLT_MAX)) {
    return fail(error, Status::kInvalidArgument,
                "sampler: repetition_penalty is %g; expected above 0, 1 for none",
                static_cast<double>(options.repetition_penalty));
  }
  if (options.repetition_window > kMaxWindow) {
    return fail(error, Status::kInvalidArgument,
                "sampler: repetition_window is %u; at most %u is supported",
                static_cast<unsigned>(options.repetition_window),
                static_cast<unsigned>(kMaxWindow));
  }
  return Status::kOk;
}

}  // namespace

/// Offsets of the parts in the aligned memory.
struct oxb_sampler::Layout {
  uint64_t logits = 0;
  uint64_t candidates = 0;
  uint64_t window = 0;
  /// With room to align.
  uint64_t bytes = 0;

  /// All sizes are below 2^36, so nothing here overflows 64 bits.
  Layout(uint32_t vocabulary, uint32_t window_size) {
    logits = oxbow::round_up(sizeof(oxb_sampler), alignof(oxb_sampler));
    candidates = logits + uint64_t{vocabulary} * sizeof(float);
    window = candidates + uint64_t{vocabulary} * sizeof(uint32_t);
    bytes = window + uint64_t{window_size} * sizeof(int32_t) + alignof(oxb_sampler) - 1;
  }
};

Status oxb_sampler::measure(uint32_t vocabulary, const oxb_sampler_options& options, size_t* bytes,
                            Error* error) {
  if (vocabulary == 0 || vocabulary > INT32_MAX) {
    return fail(error, Status::kInvalidArgument, "sampler: vocabulary is %u; expected 1 to %d",
                static_cast<unsigned>(vocabulary), INT32_MAX);
  }
  OXB_TRY(check_options(options, error));
  const Layout layout(vocabulary, options.repetition_window);
  if (layout.bytes > SIZE_MAX / 2) {
    return fail(error, Status::kInvalidArgument,
                "sampler: a vocabulary of %u does not fit in memory",
                static_cast<unsigned>(vocabulary));
  }
  *bytes = static_cast<size_t>(layout.bytes);
  return Status::kOk;
}

Status oxb_sampler::place(uint32_t vocabulary, const oxb_sampler_options& options, void* memory,
                          size_t bytes, oxb_sampler** sampler, Error* error) {
  size_t needed = 0;
  OXB_TRY(measure(vocabulary, options, &needed, error));
  if (memory == nullptr || bytes < needed) {
    return fail(error, Status::kBufferTooSmall, "sampler: given %zu bytes; expected %zu",
                memory == nullptr ? 0 : bytes, needed);
  }
  auto* base = static_cast<std::byte*>(memory);
  base += -reinterpret_cast<uintptr_t>(base) % alignof(oxb_sampler);

  const Layout layout(vocabulary, options.repetition_window);
  auto* made = new (base) oxb_sampler();
  made->options_ = options;
  made->random_ = options.seed;
  made->logits_ = {new (base + layout.logits) float[vocabulary], vocabulary};
  made->candidates_ = {new (base + layout.candidates) uint32_t[vocabulary], vocabulary};
  if (options.repetition_window != 0) {
    made->window_ = {new (base + layout.window) int32_t[options.repetition_window],
                     options.repetition_window};
  }
  *sampler = made;
  return Status::kOk;
}

void oxb_sampler::accept(int32_t token) {
  if (window_.empty() || token < 0 || static_cast<size_t>(token) >= logits_.size()) return;
  window_[window_next_] = token;
  window_next_ = (window_next_ + 1) % window_.size();
  window_count_ = std::min(window_count_ + 1, window_.size());
}

void oxb_sampler::restart(uint64_t seed) {
  random_ = seed;
  window_count_ = window_next_ = 0;
}

/// The window's tokens follow.
struct oxb_sampler::Saved {
  uint64_t random;
  uint32_t count;
  uint32_t next;
};

size_t oxb_sampler::saved_bytes(const oxb_sampler_options& options) {
  return sizeof(Saved) + options.repetition_window * sizeof(int32_t);
}

void oxb_sampler::save(std::byte* saved) const {
  const Saved head = {random_, static_cast<uint32_t>(window_count_),
                      static_cast<uint32_t>(window_next_)};
  std::memcpy(saved, &head, sizeof(head));
  std::memset(saved + sizeof(head), 0, window_.size_bytes());
  if (window_count_ > 0) {
    std::memcpy(saved + sizeof(head), window_.data(), window_count_ * sizeof(int32_t));
  }
}

Status oxb_sampler::load(const std::byte* saved, Error* error) {
  Saved head;
  std::memcpy(&head, saved, sizeof(head));
  const size_t size = window_.size();
  // Until the window is full its tokens are the first ones.
  bool sound = head.count <= size && (size == 0 ? head.next == 0 : head.next < size) &&
               (head.count == size || head.next == head.count);
  for (size_t i = 0; sound && i < head.count; ++i) {
    int32_t token = 0;
    std::memcpy(&token, saved + sizeof(head) + i * sizeof(token), sizeof(token));
    sound = token >= 0 && static_cast<size_t>(token) < logits_.size();
  }
  if (!sound) {
    return fail(error, Status::kStateCorrupt, "sampler state: the window is out of range");
  }
  random_ = head.random;
  window_count_ = head.count;
  window_next_ = head.next;
  if (head.count > 0) {
    std::memcpy(window_.data(), saved + sizeof(head), head.count * sizeof(int32_t));
  }
  return Status::kOk;
}

/// Fills logits_ and finds the most likely token.
Status oxb_sampler::copy_and_penalise(const float* logits, Error* error) {
  for (size_t id = 0; id < logits_.size(); ++id) {
    if (!(logits[id] <= FLT_MAX)) {
      return fail(error, Status::kInvalidArgument,
                  "sampler: the logit of token %zu is %g; expected a number or -inf", id,
                  static_cast<double>(logits[id]));
    }
    logits_[id] = logits[id];
  }
  // Computed from the given logits, so a token that is in the window twice is penalised once.
  const float penalty = options_.repetition_penalty;
  if (penalty != 1.0f) {
    for (size_t i = 0; i < window_count_; ++i) {
      const auto id = static_cast<size_t>(window_[i]);
      const float given = logits[id];
      if (given < -FLT_MAX) continue;
      const float changed = given > 0.0f ? given / penalty : given * penalty;
      logits_[id] = std::clamp(changed, -FLT_MAX, FLT_MAX);
    }
  }
  most_id_ = 0;
  for (uint32_t id = 1; id < logits_.size(); ++id) {
    if (logits_[id] > logits_[most_id_]) most_id_ = id;
  }
  most_ = logits_[most_id_];
  if (most_ < -FLT_MAX) {
    return fail(error, Status::kInvalidArgument,
                "sampler: all logits are -inf; no token is possible");
  }
  return Status::kOk;
}

/// splitmix64 (Steele, Lea and Flood, 2014).
double oxb_sampler::uniform() {
  random_ += 0x9e3779b97f4a7c15ull;
  uint64_t z = random_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

float oxb_sampler::weight(uint32_t id) const {
  return oxbow::exp_f32((logits_[id] - most_) / options_.temperature);
}

size_t oxb_sampler::keep_most_likely(double* total) {
  const size_t vocabulary = logits_.size();
  const bool all_k = options_.top_k == 0 || options_.top_k >= vocabulary;
  for (uint32_t id = 0; id < vocabulary; ++id) candidates_[id] = id;

  // A heap gives the most likely tokens one by one: O(V) to build, O(log V) for each one taken.
  // They gather at the end of the array. Equal logits: the lower id first.
  const auto less_likely = [this](uint32_t a, uint32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] < logits_[b] : a > b;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  const auto take = [&](size_t taken) {
    std::pop_heap(candidates_.begin(), candidates_.end() - static_cast<ptrdiff_t>(taken),
                  less_likely);
    return candidates_[vocabulary - 1 - taken];
  };

  size_t kept = 0;
  double sum = 0.0;
  if (all_k) {
    double whole = 0.0;
    for (uint32_t id = 0; id < vocabulary; ++id) whole += static_cast<double>(weight(id));
    const double enough = whole * static_cast<double>(options_.top_p);
    while (kept < vocabulary && (kept == 0 || sum < enough)) {
      sum += static_cast<double>(weight(take(kept)));
      ++kept;
    }
  } else {
    for (; kept < options_.top_k; ++kept) sum += static_cast<double>(weight(take(kept)));
    if (options_.top_p < 1.0f) {
      const double enough = sum * static_cast<double>(options_.top_p);
      const size_t taken = kept;
      sum = 0.0;
      for (kept = 0; kept < taken && (kept == 0 || sum < enough); ++kept) {
        sum += static_cast<double>(weight(candidates_[vocabulary - 1 - kept]));
      }
    }
  }
  std::reverse(candidates_.begin(), candidates_.end());
  *total = sum;
  return kept;
}

Status oxb_sampler::pick(const float* logits, int32_t* token, Error* error) {
  OXB_TRY(copy_and_penalise(logits, error));
  if (options_.temperature == 0.0f) {
    *token = static_cast<int32_t>(most_id_);
    return Status::kOk;
  }
  const size_t vocabulary = logits_.size();
  const bool everything =
      (options_.top_k == 0 || options_.top_k >= vocabulary) && options_.top_p == 1.0f;
  size_t kept = vocabulary;
  double total = 0.0;
  if (everything) {
    for (uint32_t id = 0; id < vocabulary; ++id) total += static_cast<double>(weight(id));
  } else {
    kept = keep_most_likely(&total);
  }
  // The sum below is taken in the order of the one above, so it reaches the same total, which is
  // above the target: the loop always ends with a token, and with one of a weight above 0.
  const double target = uniform() * total;
  double sum = 0.0;
  uint32_t picked = most_id_;
  for (size_t i = 0; i < kept; ++i) {
    const uint32_t id = everything ? static_cast<uint32_t>(i) : candidates_[i];
    sum += static_cast<double>(weight(id));
    if (sum > target) {
      picked = id;
      break;
    }
  }
  *token = static_cast<int32_t>(picked);
  return Status::kOk;
}
