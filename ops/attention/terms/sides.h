#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// Keys of the first of two sources, which stand for blocks of the text (Guo 2022): every query sees them, with a bias by
/// the distance of blocks.
struct SidesTerm {
  static constexpr size_t kInputs = 1;

  const float* bias = nullptr;
  size_t heads = 0;
  size_t rows = 0;
  size_t zero = 0;
  size_t length = 1;

  static Place place(const TermView& view, size_t /*index*/) {
    return view.weight("sides' bias", view.heads, Rows::fixed());
  }

  Status bind(TermBinding& binding) {
    BindContext& context = binding.context;
    if (!binding.own || binding.options.sources() != 2) {
      return context.fail("sides need own rows and one more source");
    }
    const Tensor first = context.input(1);
    if (first.ring >= 0) return context.fail("sides '%s' must not be in a ring", first.name);
    const Tensor table = binding.input(0);
    rows = table.rows;
    zero = binding.use.options->zero();
    length = binding.use.options->length();
    if (length == 0 || zero >= rows) {
      return context.fail("sides have the length %zu and the zero %zu in a table of %zu rows",
                          length, zero, rows);
    }
    using Kind = schema::TermKind;
    if (binding.has(Kind::Relative) || binding.has(Kind::Alibi) || binding.has(Kind::Segments) ||
        binding.has(Kind::AdaptiveSpan) || binding.has(Kind::Rooms)) {
      return context.fail("sides have no terms by distance beside them but a distance bias");
    }
    bias = table.f32();
    heads = binding.heads;
    return Status::kOk;
  }

  struct State {};

  template <typename Primitives, typename Element>
  void after_scale(const TermTile<Element>& tile, const State&, float* scores) const {
    // Own rows follow the sides.
    const size_t sides = tile.query.position - tile.query.row;
    const size_t block = tile.query.row / length;
    const size_t own = block < sides ? block : sides - 1;
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      if (span.row != kNoRow) return;
      for (size_t j = 0; j < span.count; ++j) {
        const size_t t = own + zero, key = span.position + j * span.step;
        const size_t row = t < key ? 0 : t - key;
        const size_t last = rows - 1;
        scores[index + j] =
            scores[index + j] + bias[(row < last ? row : last) * heads + tile.query.head];
      }
    });
  }
};

}  // namespace oxbow
