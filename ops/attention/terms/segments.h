#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"
#include "runtime/base/math.h"

namespace oxbow {

/// Adds (q + g) . G[types differ], as XLNet does. Keys that are not in the last source have the type 0.
struct SegmentsTerm {
  static constexpr size_t kInputs = 3;

  const int32_t* types = nullptr;
  const float* table = nullptr;
  const float* bias = nullptr;
  size_t table_stride = 0;

  static Place place(const TermView& view, size_t index) {
    if (index == 0) return view.row_numbers("types");
    return view.weight(index == 1 ? "segment table" : "segment bias", view.q_width,
                       Rows::exactly(index == 1 ? 2 : 1));
  }

  Status bind(TermBinding& binding) {
    BindContext& context = binding.context;
    const Tensor h = binding.input(0), both = binding.input(1), g = binding.input(2);
    if (!binding.own) {
      return context.fail("segments need own rows: a query's type is that of its row");
    }
    types = h.i32();
    table = both.f32();
    bias = g.f32();
    table_stride = both.width;
    return Status::kOk;
  }

  /// Terms of keys of the query's type and of another one.
  struct State {
    float of_type[2];
  };

  template <typename Primitives, typename Element>
  void begin(const AttentionQuery& query, const AttentionShape& shape, std::byte* scratch,
             State* state) const {
    const size_t column = query.head * shape.head_width;
    auto* biased = scratch_vector<float>(scratch, kSums, shape);
    for (size_t d = 0; d < shape.head_width; ++d) biased[d] = query.q[d] + bias[column + d];
    for (size_t i = 0; i < 2; ++i) {
      state->of_type[i] = dot_f32(biased, table + i * table_stride + column, shape.head_width);
    }
  }

  template <typename Primitives, typename Element>
  void before_scale(const TermTile<Element>& tile, const State& state, float* scores) const {
    const int32_t own = types[tile.query.row];
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      for (size_t j = 0; j < span.count; ++j) {
        const int32_t type = span.row == kNoRow ? 0 : types[span.row + j * span.step];
        scores[index + j] = scores[index + j] + state.of_type[type == own ? 0 : 1];
      }
    });
  }
};

}  // namespace oxbow
