#include "runtime/index/index.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/base/checked.h"
#include "runtime/base/quantize.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

constexpr char kMagic[4] = {'O', 'X', 'B', 'X'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 64;
// What a search keeps on the stack: queries and the products of some vectors with them.
constexpr size_t kQueriesAtOnce = 8;
constexpr size_t kVectorsAtOnce = 512;
static_assert(kVectorsAtOnce % kBlockRows == 0);

/// The first bytes of a table, little endian; the rest of the header is zero.
struct Header {
  char magic[4];
  uint32_t version;
  uint64_t count;
  uint32_t width;
  uint32_t metric;
  uint64_t bytes;
};
static_assert(sizeof(Header) <= kHeaderBytes);

/// Puts a vector into its place among those of its block.
void store_codes(int8_t* codes, uint64_t vector, size_t width, const int8_t* from) {
  const size_t columns = ceil_div(width, kBlockColumns);
  int8_t* block = codes + vector / kBlockRows * columns * kBlockRows * kBlockColumns +
                  vector % kBlockRows * kBlockColumns;
  for (size_t i = 0; i < width; ++i) {
    block[i / kBlockColumns * kBlockRows * kBlockColumns + i % kBlockColumns] = from[i];
  }
}

/// The best results of one query so far, sorted.
struct Best {
  uint64_t* ids;
  float* scores;
  uint32_t k;

  /// Whether it is among them: of equal ones the earlier stays in front. NaN never is.
  void offer(uint64_t id, float score) {
    if (!(score > scores[k - 1])) return;
    uint32_t at = k - 1;
    for (; at > 0 && score > scores[at - 1]; --at) {
      scores[at] = scores[at - 1];
      ids[at] = ids[at - 1];
    }
    scores[at] = score;
    ids[at] = id;
  }
};

}  // namespace

Status plan_index(uint64_t count, uint32_t width, uint32_t metric, IndexLayout* layout,
                  Error* error) {
  if (width == 0 || width > kMaxIndexWidth || metric > static_cast<uint32_t>(Metric::kL2)) {
    return fail(error, Status::kInvalidArgument,
                "index: width %u and metric %u, expected 1 to %u and at most 1", width, metric,
                kMaxIndexWidth);
  }
  *layout = {count, width, static_cast<Metric>(metric), 0, 0, 0};
  uint64_t blocks = 0, codes = 0, numbers = 0;
  const bool fits =
      checked_add(count, kBlockRows - 1, &blocks) &&
      checked_mul(blocks / kBlockRows, round_up(width, kBlockColumns) * kBlockRows, &codes) &&
      checked_add(codes, kHeaderBytes, &codes) &&
      checked_align(codes, kTensorAlignment, &layout->scales_at) &&
      checked_mul(count, sizeof(float), &numbers) &&
      checked_align(numbers, kTensorAlignment, &numbers) &&
      checked_add(layout->scales_at, numbers, &layout->biases_at) &&
      checked_add(layout->biases_at, layout->metric == Metric::kL2 ? numbers : 0, &layout->bytes) &&
      layout->bytes <= SIZE_MAX / 2;
  if (fits) return Status::kOk;
  return fail(error, Status::kInvalidArgument, "index: %llu vectors of %u do not fit the memory",
              static_cast<unsigned long long>(count), width);
}

Status create_index(void* memory, size_t bytes, const IndexLayout& layout, Error* error) {
  if (reinterpret_cast<uintptr_t>(memory) % kTensorAlignment != 0 || bytes < layout.bytes) {
    return fail(error, Status::kInvalidArgument,
                "index: %zu bytes of memory, expected %llu, aligned to %zu", bytes,
                static_cast<unsigned long long>(layout.bytes), kTensorAlignment);
  }
  std::memset(memory, 0, static_cast<size_t>(layout.bytes));
  Header header = {
      {}, kVersion, layout.count, layout.width, static_cast<uint32_t>(layout.metric), layout.bytes};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::memcpy(memory, &header, sizeof(header));
  return Status::kOk;
}

Status read_index(const void* table, size_t bytes, IndexLayout* layout, Error* error) {
  Header header;
  if (bytes < kHeaderBytes || reinterpret_cast<uintptr_t>(table) % kTensorAlignment != 0) {
    return fail(error, Status::kFileCorrupt,
                "index: %zu bytes, expected at least %zu, aligned to %zu", bytes, kHeaderBytes,
                kTensorAlignment);
  }
  std::memcpy(&header, table, sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kVersion) {
    return fail(error, Status::kFileCorrupt,
                "index: it does not begin as a table of version %u does", kVersion);
  }
  if (plan_index(header.count, header.width, header.metric, layout, error) != Status::kOk) {
    return Status::kFileCorrupt;
  }
  if (header.bytes == layout->bytes && layout->bytes <= bytes) return Status::kOk;
  return fail(error, Status::kFileCorrupt,
              "index: %llu vectors of %u take %llu bytes, the table says %llu and there are %zu",
              static_cast<unsigned long long>(layout->count), layout->width,
              static_cast<unsigned long long>(layout->bytes),
              static_cast<unsigned long long>(header.bytes), bytes);
}

Status put_vectors(void* table, const IndexLayout& layout, uint64_t first, const float* vectors,
                   uint64_t count, Error* error) {
  if (first > layout.count || count > layout.count - first) {
    return fail(error, Status::kInvalidArgument, "index: vectors %llu and %llu more, it has %llu",
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(layout.count));
  }
  auto* bytes = static_cast<std::byte*>(table);
  auto* codes = reinterpret_cast<int8_t*>(bytes + kHeaderBytes);
  auto* scales = reinterpret_cast<float*>(bytes + layout.scales_at);
  int8_t row[kMaxIndexWidth];
  for (uint64_t v = 0; v < count; ++v) {
    float* scale = scales + first + v;
    quantize_group(vectors + v * layout.width, layout.width, row, scale);
    store_codes(codes, first + v, layout.width, row);
    if (layout.metric != Metric::kL2) continue;
    int32_t squares = 0;
    for (uint32_t i = 0; i < layout.width; ++i) squares += int32_t{row[i]} * row[i];
    reinterpret_cast<float*>(bytes + layout.biases_at)[first + v] =
        -0.5f * (static_cast<float>(squares) * (*scale * *scale));
  }
  return Status::kOk;
}

void search_index(const void* table, const IndexLayout& layout, const float* queries,
                  size_t query_count, uint64_t first, uint64_t count, uint32_t k, uint64_t* ids,
                  float* scores) {
  constexpr size_t kStride = round_up(kMaxIndexWidth, kI8RowAlignment);
  alignas(kTensorAlignment) int8_t rows[kQueriesAtOnce * kStride];
  alignas(kTensorAlignment) float products[kQueriesAtOnce * kVectorsAtOnce];
  float row_scales[kQueriesAtOnce];
  const auto* bytes = static_cast<const std::byte*>(table);
  const auto* codes = reinterpret_cast<const int8_t*>(bytes + kHeaderBytes);
  const auto* scales = reinterpret_cast<const float*>(bytes + layout.scales_at);
  const bool l2 = layout.metric == Metric::kL2;
  const auto* biases = l2 ? reinterpret_cast<const float*>(bytes + layout.biases_at) : nullptr;
  const size_t width = layout.width, stride = round_up(width, kI8RowAlignment);
  const size_t vector_bytes = round_up(width, kBlockColumns);
  std::fill_n(ids, query_count * k, UINT64_MAX);
  std::fill_n(scores, query_count * k, -std::numeric_limits<float>::infinity());
  const uint64_t end = first + count;
  for (size_t q = 0; q < query_count; q += kQueriesAtOnce) {
    const size_t batch = std::min(kQueriesAtOnce, query_count - q);
    for (size_t r = 0; r < batch; ++r) {
      int8_t* row = rows + r * stride;
      quantize_group(queries + (q + r) * width, width, row, row_scales + r);
      std::memset(row + width, 0, stride - width);
    }
    // Blocks of vectors are read whole, and those outside of the range passed over.
    for (uint64_t at = first / kBlockRows * kBlockRows; at < end; at += kVectorsAtOnce) {
      const auto vectors = static_cast<size_t>(std::min<uint64_t>(kVectorsAtOnce, end - at));
      compute_index_products({rows, batch, stride, row_scales, codes + at * vector_bytes,
                              scales + at, l2 ? biases + at : nullptr, vectors, width, products});
      for (size_t r = 0; r < batch; ++r) {
        Best best = {ids + (q + r) * k, scores + (q + r) * k, k};
        const float* product = products + r * vectors;
        for (size_t v = at < first ? static_cast<size_t>(first - at) : 0; v < vectors; ++v) {
          best.offer(at + v, product[v]);
        }
      }
    }
    for (size_t r = 0; l2 && r < batch; ++r) {
      const int8_t* row = rows + r * stride;
      int32_t squares = 0;
      for (size_t i = 0; i < width; ++i) squares += int32_t{row[i]} * row[i];
      const float length = static_cast<float>(squares) * (row_scales[r] * row_scales[r]);
      for (uint32_t i = 0; i < k; ++i) {
        float& score = scores[(q + r) * k + i];
        score = 2.0f * score - length;
      }
    }
  }
}

}  // namespace oxbow
