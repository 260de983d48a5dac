#pragma once

// A tensor as an op sees it: a matrix of rows somewhere in memory. Ops know no graph, no file and no
// arena; they get these views in bind and keep them.
//
// Storage of a row-major tensor      F32, I32:  rows x width elements
//                                    I8:        rows x round_up(width, 16) elements (padding is zero),
//                                               then rows x scale_groups F32 scales
// Storage of a Block8x4 I8 weight    [ceil(rows/8)][ceil(width/4)][8][4] elements (padding is zero),
//                                    then rows x scale_groups F32 scales
// Weights of fewer bits              F16, BF16: rows x width elements
//                                    I4:        I4Block[ceil(rows/8)][ceil(width/32)], scales among them
//                                    I4Min:     I4MinBlock[ceil(rows/8)][ceil(width/32)], scales and mins among them
//                                    Ternary:   TernaryBlock[ceil(rows/8)][ceil(width/16)], then rows F32 scales
// Rings of four bits                 I4Rows:    rows x round_up(17 * width / 32, 16) bytes: I4RowBlock[width/32], then
//                                               rows x scale_groups F32 scales
// value = element * scale of its row and group, plus min where there is one.

#include <cstddef>
#include <cstdint>

#include "runtime/base/checked.h"
#include "runtime/base/i4_rows.h"
#include "runtime/base/weight_blocks.h"

namespace oxbow {

enum class DataType : uint8_t {
  kF32 = 0,
  kI8 = 1,
  kI32 = 2,
  kF16 = 3,
  kBF16 = 4,
  kI4 = 5,
  kTernary = 6,
  kI4Min = 7,
  kI4Rows = 8
};
enum class Layout : uint8_t {
  kRowMajor = 0,
  kBlock8x4 = 1,
  kBlock8x32 = 2,
  kBlock8x16 = 3,
  kBlock8x32Min = 4
};

inline constexpr size_t kBlockColumns = 4;
inline constexpr size_t kTensorAlignment = 64;
inline constexpr size_t kI8RowAlignment = 16;

/// Where a first-in first-out memory stands. Its first `pinned` rows stay where they are; of the others,
/// row r (0 = oldest) is at slot pinned + (head + r) % (capacity - pinned).
struct RingPosition {
  uint32_t head = 0;
  /// All rows, pinned ones included.
  uint32_t count = 0;
};

/// The slot of row `row` (0 = oldest, pinned rows first) in a ring.
constexpr size_t ring_slot(const RingPosition& ring, size_t capacity, size_t pinned, size_t row) {
  return row < pinned ? row : pinned + (ring.head + row - pinned) % (capacity - pinned);
}

/// Bytes from one row to the next, where rows lie one after the other.
constexpr size_t row_bytes(DataType type, size_t width) {
  if (type == DataType::kI8) return round_up(width, kI8RowAlignment);
  if (type == DataType::kI4Rows) return round_up(i4_row_bytes(width), kI8RowAlignment);
  return width * (type == DataType::kF16 || type == DataType::kBF16 ? 2 : 4);
}

/// Columns and bytes of a layout's blocks of eight rows; none of rows one after the other.
struct BlockSize {
  size_t columns = 0;
  size_t bytes = 0;
};
constexpr BlockSize block_size(Layout layout) {
  switch (layout) {
    case Layout::kBlock8x4:
      return {kBlockColumns, kBlockRows * kBlockColumns};
    case Layout::kBlock8x32:
      return {kI4BlockColumns, sizeof(I4Block)};
    case Layout::kBlock8x32Min:
      return {kI4BlockColumns, sizeof(I4MinBlock)};
    case Layout::kBlock8x16:
      return {kTernaryBlockColumns, sizeof(TernaryBlock)};
    case Layout::kRowMajor:
      break;
  }
  return {};
}

/// Whether elements of this type may lie so.
constexpr bool can_lie(DataType type, Layout layout) {
  switch (type) {
    case DataType::kI8:
      return layout == Layout::kRowMajor || layout == Layout::kBlock8x4;
    case DataType::kI4:
      return layout == Layout::kBlock8x32;
    case DataType::kI4Min:
      return layout == Layout::kBlock8x32Min;
    case DataType::kTernary:
      return layout == Layout::kBlock8x16;
    default:
      return layout == Layout::kRowMajor;
  }
}

/// Whether F32 scales follow the elements.
constexpr bool has_scales(DataType type) {
  return type == DataType::kI8 || type == DataType::kTernary || type == DataType::kI4Rows;
}

/// Bytes of all elements, without scales. Call only with sizes `tensor_bytes` accepted.
constexpr size_t element_bytes(DataType type, Layout layout, size_t rows, size_t width) {
  if (layout == Layout::kRowMajor) return rows * row_bytes(type, width);
  const BlockSize block = block_size(layout);
  return ceil_div(rows, kBlockRows) * ceil_div(width, block.columns) * block.bytes;
}

/// Bytes of a tensor with its scales; false when the number does not fit or makes no sense.
[[nodiscard]] inline bool tensor_bytes(DataType type, Layout layout, uint32_t rows, uint32_t width,
                                       uint32_t scale_groups, uint64_t* bytes) {
  if (rows == 0 || width == 0 || rows > 0x7fffffffu || width > 0x3fffffffu) return false;
  if (!can_lie(type, layout)) return false;
  if (has_scales(type) != (scale_groups != 0)) return false;
  if (type == DataType::kI8 && width % scale_groups != 0) return false;
  if (type == DataType::kI4Rows && width % (uint64_t{scale_groups} * kI4RowColumns) != 0)
    return false;
  if (type == DataType::kTernary && scale_groups != 1) return false;
  // rows < 2^31, a row < 2^32 bytes and its scales < 2^32 bytes: the sum stays below 2^64. Blocks have less than five
  // bytes for each element, and a fourth of the rows' number at most is padding.
  uint64_t elements = uint64_t{rows} * row_bytes(type, width);
  if (const BlockSize block = block_size(layout); block.columns != 0) {
    const uint64_t blocks = (uint64_t{width} + block.columns - 1) / block.columns;
    elements = (uint64_t{rows} + kBlockRows - 1) / kBlockRows * blocks * block.bytes;
  }
  return checked_add(elements, uint64_t{rows} * scale_groups * 4, bytes) && *bytes <= SIZE_MAX / 2;
}

struct Tensor {
  /// First element; scales follow as told above. Null while the arena is only being counted.
  std::byte* data = nullptr;
  float* scales = nullptr;
  const char* name = "";
  DataType type = DataType::kF32;
  Layout layout = Layout::kRowMajor;
  /// Which symbol holds the actual row count, -1: `rows` is exact. There are few; sessions hold many of these views.
  int16_t rows_symbol = -1;
  uint32_t rows = 0;
  uint32_t width = 0;
  uint32_t scale_groups = 0;
  /// Which ring the rows move in, -1: none.
  int16_t ring = -1;
  /// Unless 0: rows are turned in blocks of so many elements (hadamard.h), before they are quantised.
  uint16_t hadamard = 0;
  /// Rows at the start of that ring that never move.
  uint32_t pinned = 0;
  /// I32 only: every value is below this.
  uint32_t limit = 0;
  /// I8 only. Unless 0: the scale of every row; otherwise each row has its own.
  float static_scale = 0.0f;

  size_t stride() const { return row_bytes(type, width); }
  const float* f32(size_t row = 0) const {
    return reinterpret_cast<const float*>(data) + row * width;
  }
  float* f32(size_t row = 0) { return reinterpret_cast<float*>(data) + row * width; }
  const int8_t* i8(size_t row = 0) const {
    return reinterpret_cast<const int8_t*>(data) + row * stride();
  }
  int8_t* i8(size_t row = 0) { return reinterpret_cast<int8_t*>(data) + row * stride(); }
  const int32_t* i32(size_t row = 0) const {
    return reinterpret_cast<const int32_t*>(data) + row * width;
  }
  int32_t* i32(size_t row = 0) { return reinterpret_cast<int32_t*>(data) + row * width; }
  const float* row_scales(size_t row) const { return scales + row * scale_groups; }
  float* row_scales(size_t row) { return scales + row * scale_groups; }
};

}  // namespace oxbow
