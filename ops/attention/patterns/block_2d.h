#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Positions are the pixels of an image of `image_width` columns, row after row, in blocks of `length` rows by
/// `block_width` columns. A query sees its block, `before` rows above it and `after` columns on both sides of
/// all that, as far as it is not newer than the query.
struct Block2DPattern {
  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    if (p.image_width == 0 || p.block_width == 0) {
      return context.fail("blocks of %u columns in an image of %u columns", p.block_width,
                          p.image_width);
    }
    return Status::kOk;
  }

  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t width = p.image_width, block_rows = p.length, block_columns = p.block_width;
    const uint64_t row = query / width, column = query % width;
    const uint64_t block_row = row / block_rows * block_rows;
    const uint64_t block_column = column / block_columns * block_columns;
    const uint64_t left = block_column - smaller(p.after, block_column);
    const uint64_t right = smaller(width, block_column + block_columns + p.after);
    for (uint64_t r = block_row - smaller(p.before, block_row); r < row; ++r) {
      emit_range(r * width + left, r * width + right, emit);
    }
    emit_range(row * width + left, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
