#pragma once

// Rows that are remembered in four bits. A row was int8 before, with a scale for each group of columns, usually a head; each
// 32 columns of a group have a step in units of that scale, so that
//
//   int8 code = code * step,   code in [-7, 7], step in [1, 18]
//
// is an int8 code again: whoever multiplies int8 rows needs nothing new but unpack_i4_row(). All of it is integers, so that
// every machine has the same bits.

#include <cstddef>
#include <cstdint>

namespace oxbow {

inline constexpr size_t kI4RowColumns = 32;
inline constexpr int kMostI4RowCode = 7;
/// The largest with which no code leaves int8.
inline constexpr int kMostI4RowStep = 127 / kMostI4RowCode;

struct I4RowBlock {
  /// Byte i: code + 8 of column i in the low half, of column i + 16 in the high one.
  uint8_t codes[kI4RowColumns / 2];
  uint8_t step;
};
static_assert(sizeof(I4RowBlock) == 17);

/// Of whole blocks.
constexpr size_t i4_row_bytes(size_t width) {
  return (width + kI4RowColumns - 1) / kI4RowColumns * sizeof(I4RowBlock);
}

/// round(size / step), halves away from zero, at most kMostI4RowCode; exact for 0 <= size <= 128 and all steps.
constexpr int i4_row_code(int size, int step) {
  constexpr auto kInverse = [] {
    struct {
      uint32_t of[kMostI4RowStep + 1] = {};
    } table;
    for (uint32_t s = 1; s <= kMostI4RowStep; ++s) table.of[s] = (1u << 16) / (2 * s) + 1;
    return table;
  }();
  const auto scaled = static_cast<uint32_t>(2 * size + step) * kInverse.of[step];
  const int code = static_cast<int>(scaled >> 16);
  return code < kMostI4RowCode ? code : kMostI4RowCode;
}

/// The step that loses least, by the sum of squares: that of the largest code or one of those below it, which cut it off.
inline void pack_i4_block(const int8_t* codes, I4RowBlock* block) {
  int largest = 0, sizes[kI4RowColumns];
  for (size_t i = 0; i < kI4RowColumns; ++i) {
    sizes[i] = codes[i] < 0 ? -int{codes[i]} : int{codes[i]};
    largest = sizes[i] > largest ? sizes[i] : largest;
  }
  int most = (largest + kMostI4RowCode - 1) / kMostI4RowCode;
  most = most < 1 ? 1 : most > kMostI4RowStep ? kMostI4RowStep : most;
  int best = most, least_error = INT32_MAX;
  for (int step = most; 4 * step >= 3 * most; --step) {
    int error = 0;
    for (size_t i = 0; i < kI4RowColumns; ++i) {
      const int lost = sizes[i] - step * i4_row_code(sizes[i], step);
      error += lost * lost;
    }
    if (error < least_error) {
      least_error = error;
      best = step;
    }
  }
  const auto stored = [&](size_t i) {
    const int code = i4_row_code(sizes[i], best);
    return static_cast<unsigned>(8 + (codes[i] < 0 ? -code : code));
  };
  for (size_t i = 0; i < kI4RowColumns / 2; ++i) {
    block->codes[i] = static_cast<uint8_t>(stored(i) | stored(i + kI4RowColumns / 2) << 4);
  }
  block->step = static_cast<uint8_t>(best);
}

/// `width` columns, of whole blocks. What no pack wrote wraps around.
inline void unpack_i4_row(const I4RowBlock* blocks, size_t width, int8_t* codes) {
  for (size_t b = 0; b < width / kI4RowColumns; ++b, codes += kI4RowColumns) {
    const I4RowBlock& block = blocks[b];
    const int step = block.step;
    for (size_t i = 0; i < kI4RowColumns / 2; ++i) {
      codes[i] = static_cast<int8_t>((int{block.codes[i] & 15} - 8) * step);
    }
    for (size_t i = 0; i < kI4RowColumns / 2; ++i) {
      codes[i + kI4RowColumns / 2] = static_cast<int8_t>((int{block.codes[i] >> 4} - 8) * step);
    }
  }
}

}  // namespace oxbow
