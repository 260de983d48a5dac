#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// The score of a query with its own row is a fixed number: a token that is its own key (Reformer) hardly looks at
/// itself.
struct OwnScoreTerm {
  static constexpr size_t kInputs = 0;

  float value = 0.0f;

  Status bind(TermBinding& binding) {
    value = binding.use.options->value();
    if (!std::isfinite(value)) return binding.context.fail("the own score must be finite");
    return binding.own ? Status::kOk : binding.context.fail("an own score needs own rows");
  }

  struct State {};

  template <typename Primitives, typename Element>
  void after_scale(const TermTile<Element>& tile, const State&, float* scores) const {
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      if (span.row == kNoRow || span.row > tile.query.row) return;
      const uint64_t rows = tile.query.row - span.row;
      if (rows % span.step == 0 && rows / span.step < span.count) {
        scores[index + rows / span.step] = value;
      }
    });
  }
};

}  // namespace oxbow
