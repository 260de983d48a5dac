#pragma once

// Which row of a table belongs to which key: t = min(max(d + relative_zero, 0), rows - 1). `Primitives`
// keeps the code inside the file of its kernel.

#include <cstddef>
#include <cstdint>

#include "ops/attention/tile.h"

namespace oxbow {

/// How the keys of a span share the rows of a table. The first `last_row_keys` are so far back that they
/// have its last row; then rows follow each other down, a step apart, from `row`; keys from `end` on have
/// row 0.
struct TableRows {
  size_t last_row_keys;
  size_t row;
  size_t end;
};

template <typename Primitives, typename Element>
TableRows table_rows(const AttentionQuery& query, const AttentionShape& shape,
                     const KeySpan<Element>& span) {
  const auto last = static_cast<int64_t>(shape.distances - 1);
  const auto step = static_cast<int64_t>(span.step), keys = static_cast<int64_t>(span.count);
  const int64_t t = static_cast<int64_t>(query.position) - static_cast<int64_t>(span.position) +
                    static_cast<int64_t>(shape.relative_zero);
  int64_t far = t > last ? (t - last + step - 1) / step : 0;
  far = far < keys ? far : keys;
  const int64_t row = t - far * step;
  int64_t end = row < 0 ? far : far + row / step + 1;
  end = end < keys ? end : keys;
  return {static_cast<size_t>(far), row < 0 ? 0 : static_cast<size_t>(row),
          static_cast<size_t>(end)};
}

/// Calls visit(j, t) for the keys j of a span, with the table row t that belongs to each.
template <typename Primitives, typename Element, typename Visit>
void for_each_row(const TableRows& rows, const AttentionShape& shape, const KeySpan<Element>& span,
                  const Visit& visit) {
  for (size_t j = 0; j < rows.last_row_keys; ++j) visit(j, shape.distances - 1);
  for (size_t j = rows.last_row_keys; j < rows.end; ++j) {
    visit(j, rows.row - (j - rows.last_row_keys) * span.step);
  }
  for (size_t j = rows.end; j < span.count; ++j) visit(j, size_t{0});
}

}  // namespace oxbow
