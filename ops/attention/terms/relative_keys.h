#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/distances.h"
#include "ops/attention/terms/term.h"

namespace oxbow {

/// Adds k . R[t], with the table of the relative term.
struct RelativeKeysTerm {
  static constexpr size_t kInputs = 0;

  const std::byte* table = nullptr;
  const float* table_scales = nullptr;
  size_t table_stride = 0;
  size_t heads = 0;

  Status bind(TermBinding& binding) {
    if (binding.relative == nullptr) {
      return binding.context.fail("has relative keys without a relative term");
    }
    const Tensor r = binding.context.input(binding.relative->first_input);
    table = r.data;
    table_scales = r.scales;
    table_stride = binding.type == DataType::kF32 ? r.width : r.stride();
    heads = binding.heads;
    return Status::kOk;
  }

  struct State {};

  template <typename Primitives, typename Element>
  void before_scale(const TermTile<Element>& tile, const State&, float* scores) const {
    for_each_span(tile.keys, [&](const KeySpan<Element>& span, size_t index) {
      const TableRows rows = table_rows<Primitives>(tile.query, tile.shape, span);
      for_each_row<Primitives>(rows, tile.shape, span, [&](size_t j, size_t t) {
        scores[index + j] = scores[index + j] + product<Primitives>(tile, span, j, t);
      });
    });
  }

 private:
  /// Of key j of a span with row t of the table.
  template <typename Primitives, typename Element>
  float product(const TermTile<Element>& tile, const KeySpan<Element>& span, size_t j,
                size_t t) const {
    const size_t head_width = tile.shape.head_width, head = tile.query.head;
    const Element* k = span.k + j * span.step * tile.shape.key_stride;
    const auto* row =
        reinterpret_cast<const Element*>(table) + head * head_width + t * table_stride;
    if constexpr (sizeof(Element) == 1) {
      int32_t sum = 0;
      for (size_t d = 0; d < head_width; ++d) sum += int32_t{k[d]} * int32_t{row[d]};
      return static_cast<float>(sum) * (span.k_scales[j * span.step * tile.shape.scale_stride] *
                                        table_scales[t * heads + head]);
    } else {
      float sum = 0.0f;
      Primitives::dots(k, row, 0, 1, head_width, &sum);
      return sum;
    }
  }
};

}  // namespace oxbow
