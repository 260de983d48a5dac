#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"
#include "runtime/base/math.h"

namespace oxbow {

/// Multiplies exp(score) by clamp((ramp + span - d) / ramp, 0, 1), with a span learnt for each head
/// (Sukhbaatar 2019), but for the first positions: vectors that are always seen.
struct AdaptiveSpanTerm {
  static constexpr size_t kInputs = 1;
  /// Times the sum of the weights without factors, it is added to that of the weights.
  static constexpr float kFloor = 1e-8f;

  const float* spans = nullptr;
  float ramp = 1.0f;
  uint64_t first = 0;

  static Place place(const TermView& view, size_t /*index*/) {
    return view.weight("spans", view.heads);
  }

  Status bind(TermBinding& binding) {
    BindContext& context = binding.context;
    ramp = binding.use.options->ramp();
    first = binding.use.options->first();
    if (!std::isfinite(ramp) || ramp <= 0.0f) {
      return context.fail("the ramp of an adaptive span must be positive and finite");
    }
    if (binding.pinned_rows) {
      return context.fail("an adaptive span needs rings without pinned rows");
    }
    spans = binding.input(0).f32();
    return Status::kOk;
  }

  /// The distance from which on the factor is 0, whatever the file's numbers are.
  uint64_t reach(size_t head) const {
    const float edge = ramp + spans[head];
    if (!(edge > 0.0f)) return 0;
    if (edge >= 1e12f) return UINT64_MAX;
    const auto below = static_cast<uint64_t>(edge);
    return static_cast<float>(below) < edge ? below + 1 : below;
  }

  /// Sum of the weights that were multiplied.
  struct State {
    float sum;
  };

  template <typename Primitives, typename Element>
  void begin(const AttentionQuery&, const AttentionShape&, std::byte*, State* state) const {
    state->sum = 0.0f;
  }

  template <typename Primitives, typename Element>
  void weights(const TermTile<Element>& tile, float rescale, State* state, float* weights) const {
    const float edge = ramp + spans[tile.query.head];
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      const auto d =
          static_cast<int64_t>(tile.query.position) - static_cast<int64_t>(span.position);
      for (size_t j = 0; j < span.count; ++j) {
        const auto distance = static_cast<float>(d - static_cast<int64_t>(j * span.step));
        float factor = (edge - distance) / ramp;
        factor = factor > 1.0f ? 1.0f : factor;
        factor = factor < 0.0f ? 0.0f : factor;
        factor = span.position + j * span.step < first ? 1.0f : factor;
        weights[index + j] = weights[index + j] * factor;
      }
    });
    state->sum =
        state->sum * rescale + sum_f32(tile.keys.keys, [=](size_t j) { return weights[j]; });
  }

  template <typename Primitives>
  float divisor(const State& state, float sum) const {
    return state.sum + kFloor * sum;
  }
};

}  // namespace oxbow
