#pragma once

#include <cstddef>

#include "ops/attention/terms/distances.h"
#include "ops/attention/terms/term.h"

namespace oxbow {

/// Adds D[t] behind the scale, as T5 does.
struct DistanceBiasTerm {
  static constexpr size_t kInputs = 1;

  const float* bias = nullptr;
  size_t heads = 0;
  /// Keys of the first of two sources have a bias of their own.
  bool has_sides = false;

  static Place place(const TermView& view, size_t /*index*/) {
    return view.weight("bias", view.heads, Rows::fixed());
  }

  Status bind(TermBinding& binding) {
    if (binding.relative != nullptr) {
      return binding.context.fail("has both a relative term and a distance bias");
    }
    const Tensor d = binding.input(0);
    bias = d.f32();
    heads = binding.heads;
    has_sides = binding.has(schema::TermKind::Sides);
    binding.shape.distances = d.rows;
    return Status::kOk;
  }

  struct State {};

  template <typename Primitives, typename Element>
  void after_scale(const TermTile<Element>& tile, const State&, float* scores) const {
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      if (has_sides && span.row == kNoRow) return;
      const TableRows rows = table_rows<Primitives>(tile.query, tile.shape, span);
      for_each_row<Primitives>(rows, tile.shape, span, [&](size_t j, size_t t) {
        scores[index + j] = scores[index + j] + bias[t * heads + tile.query.head];
      });
    });
  }
};

}  // namespace oxbow
