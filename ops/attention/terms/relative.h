#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/distances.h"
#include "ops/attention/terms/term.h"

namespace oxbow {

/// Adds q . R[t] + B[t], and u to q in the products with keys: relative positions as in Transformer-XL.
struct RelativeTerm {
  static constexpr size_t kInputs = 3;

  /// R, of the type of the keys; B and u.
  const std::byte* table = nullptr;
  const float* table_scales = nullptr;
  const float* bias = nullptr;
  const float* bias_of_query = nullptr;
  size_t table_stride = 0;
  /// Elements in a row of B and of the table's scales.
  size_t heads = 0;

  static Place place(const TermView& view, size_t index) {
    if (index == 1) return view.weight("bias", view.heads, Rows::of(view.first_input));
    if (index == 2) return view.weight("query bias", view.q_width);
    return {.name = "table",
            .types = view.type == DataType::kI8 ? kI8 : kF32,
            .scales = view.heads,
            .width = Width::exactly(view.q_width),
            .rows = Rows::fixed()};
  }

  Status bind(TermBinding& binding) {
    const Tensor r = binding.input(0), b = binding.input(1), u = binding.input(2);
    table = r.data;
    table_scales = r.scales;
    bias = b.f32();
    bias_of_query = u.f32();
    table_stride = binding.type == DataType::kF32 ? r.width : r.stride();
    heads = binding.heads;
    binding.shape.distances = r.rows;
    return Status::kOk;
  }

  /// int8 only: the scale of the query in the products with the table.
  struct State {
    float query_scale;
  };

  template <typename Primitives>
  const float* query_bias(const AttentionQuery& query, const AttentionShape& shape) const {
    return bias_of_query + query.head * shape.head_width;
  }

  template <typename Primitives, typename Element>
  void begin(const AttentionQuery& query, const AttentionShape& shape, std::byte* scratch,
             State* state) const {
    if constexpr (sizeof(Element) == 1) {
      state->query_scale = quantize_query<Primitives>(
          query.q, shape.head_width, scratch_vector<int16_t>(scratch, kPosition, shape));
    }
  }

  template <typename Primitives, typename Element>
  void before_scale(const TermTile<Element>& tile, const State& state, float* scores) const {
    const size_t head = tile.query.head;
    const auto* rows = reinterpret_cast<const Element*>(table) + head * tile.shape.head_width;
    if constexpr (sizeof(Element) == 1) {
      const auto* x = scratch_vector<int16_t>(tile.scratch, kPosition, tile.shape);
      for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
        int32_t dots[kAttentionTile];
        float scales[kAttentionTile], biases[kAttentionTile];
        const TableRows of_keys = table_rows<Primitives>(tile.query, tile.shape, span);
        find_dots<Primitives>(x, rows, tile.shape, of_keys, span, dots);
        for_each_row<Primitives>(of_keys, tile.shape, span, [&](size_t j, size_t t) {
          scales[j] = table_scales[t * heads + head];
          biases[j] = bias[t * heads + head];
        });
        OXB_WIDE_LOOP
        for (size_t j = 0; j < span.count; ++j) {
          const float term = static_cast<float>(dots[j]) * (state.query_scale * scales[j]);
          scores[index + j] = (scores[index + j] + term) + biases[j];
        }
      });
    } else {
      for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
        float dots[kAttentionTile], biases[kAttentionTile];
        const TableRows of_keys = table_rows<Primitives>(tile.query, tile.shape, span);
        find_dots<Primitives>(tile.query.q, rows, tile.shape, of_keys, span, dots);
        for_each_row<Primitives>(of_keys, tile.shape, span,
                                 [&](size_t j, size_t t) { biases[j] = bias[t * heads + head]; });
        OXB_WIDE_LOOP
        for (size_t j = 0; j < span.count; ++j) {
          scores[index + j] = (scores[index + j] + dots[j]) + biases[j];
        }
      });
    }
  }

 private:
  /// Products of x with the table's rows of a span's keys. Keys that share a row share its product.
  template <typename Primitives, typename X, typename Element, typename Dot>
  void find_dots(const X* x, const Element* rows, const AttentionShape& shape,
                 const TableRows& of_keys, const KeySpan<Element>& span, Dot* dots) const {
    const auto repeat = [&](size_t row, size_t first, size_t end) {
      if (first == end) return;
      Primitives::dots(x, rows + row * table_stride, 0, 1, shape.head_width, dots + first);
      for (size_t j = first + 1; j < end; ++j) dots[j] = dots[first];
    };
    repeat(shape.distances - 1, 0, of_keys.last_row_keys);
    const size_t between = of_keys.end - of_keys.last_row_keys;
    if (between != 0) {
      // Only of two rows it is known that their distance is within the table.
      const size_t stride = between == 1 ? 0 : span.step * table_stride;
      Primitives::dots(x, rows + of_keys.row * table_stride, -static_cast<ptrdiff_t>(stride),
                       between, shape.head_width, dots + of_keys.last_row_keys);
    }
    repeat(0, of_keys.end, span.count);
  }
};

}  // namespace oxbow
