#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Positions are the pixels of an image of `width` columns, row after row, in blocks of `block_rows` by
/// `block_columns`. A query sees its block, `above` rows above it and `beside` columns on both sides of
/// all that, as far as it is not newer than the query.
struct Block2DPattern {
  uint64_t width = 1;
  uint64_t block_rows = 1;
  uint64_t block_columns = 1;
  uint64_t above = 0;
  uint64_t beside = 0;

  static Block2DPattern of(const PatternParams& p, uint64_t /*head*/) {
    return {p.image_width, p.length, p.block_width, p.before, p.after};
  }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    if (p.image_width == 0 || p.block_width == 0) {
      return context.fail("blocks of %u columns in an image of %u columns", p.block_width,
                          p.image_width);
    }
    return Status::kOk;
  }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t row = query / width, column = query % width;
    const uint64_t block_row = row / block_rows * block_rows;
    const uint64_t block_column = column / block_columns * block_columns;
    const uint64_t left = block_column - smaller(beside, block_column);
    const uint64_t right = smaller(width, block_column + block_columns + beside);
    for (uint64_t r = block_row - smaller(above, block_row); r < row; ++r) {
      emit_range(r * width + left, r * width + right, emit);
    }
    emit_range(row * width + left, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
