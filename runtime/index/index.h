#pragma once

// A table of int8 vectors and the exact search over it; see runtime/api/oxbow_index.h.
//
// The bytes     | header, 64 | codes [ceil(count/8)][ceil(width/4)][8][4] | scales [count] | biases [count], L2 only |
//               each part begins at a multiple of 64. A bias is minus half of the vector's squared length.
//
// With dot the product of codes times both scales: the score is dot, or for L2 2 (dot + bias) - |q|^2.

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"

namespace oxbow {

enum class Metric : uint32_t { kDot = 0, kL2 = 1 };

inline constexpr uint32_t kMaxIndexWidth = 2048;
inline constexpr uint32_t kMaxIndexResults = 1024;

/// Where the parts of a table are.
struct IndexLayout {
  uint64_t count = 0;
  uint32_t width = 0;
  Metric metric = Metric::kDot;
  uint64_t scales_at = 0;
  /// L2 only.
  uint64_t biases_at = 0;
  uint64_t bytes = 0;
};

Status plan_index(uint64_t count, uint32_t width, uint32_t metric, IndexLayout* layout,
                  Error* error);
Status create_index(void* memory, size_t bytes, const IndexLayout& layout, Error* error);
/// Checks the first bytes of a table.
Status read_index(const void* table, size_t bytes, IndexLayout* layout, Error* error);
Status put_vectors(void* table, const IndexLayout& layout, uint64_t first, const float* vectors,
                   uint64_t count, Error* error);

/// Vectors [first, first + count); the arguments were checked.
void search_index(const void* table, const IndexLayout& layout, const float* queries,
                  size_t query_count, uint64_t first, uint64_t count, uint32_t k, uint64_t* ids,
                  float* scores);

/// The products of int8 rows with vectors of a table, each times both scales, plus bias unless it is null. `codes` is the block
/// of the first vector, whose number is a multiple of 8; y has `vectors` products for each row.
struct IndexProducts {
  const int8_t* rows;
  size_t row_count;
  size_t row_stride;
  const float* row_scales;
  const int8_t* codes;
  const float* scales;
  const float* biases;
  size_t vectors;
  size_t width;
  float* y;
};
/// Defined in ops/linear, whose kernels these are.
void compute_index_products(const IndexProducts& products);

}  // namespace oxbow
