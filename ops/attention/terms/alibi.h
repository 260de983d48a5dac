#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// Subtracts slope * d behind the scale.
struct AlibiTerm {
  static constexpr size_t kInputs = 1;

  const float* slopes = nullptr;

  static Place place(const TermView& view, size_t /*index*/) {
    return view.weight("slopes", view.heads);
  }

  Status bind(TermBinding& binding) {
    slopes = binding.input(0).f32();
    return Status::kOk;
  }

  struct State {};

  template <typename Primitives, typename Element>
  void after_scale(const TermTile<Element>& tile, const State&, float* scores) const {
    const float slope = slopes[tile.query.head];
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      const auto d =
          static_cast<int64_t>(tile.query.position) - static_cast<int64_t>(span.position);
      for (size_t j = 0; j < span.count; ++j) {
        const auto distance = static_cast<float>(d - static_cast<int64_t>(j * span.step));
        scores[index + j] = scores[index + j] - slope * distance;
      }
    });
  }
};

}  // namespace oxbow
