#pragma once

// What bind.cc finds out about a step and attention.cc runs with.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/attention/attention.h"
#include "ops/attention/patterns/pattern.h"
#include "ops/quantize/quantize.h"
#include "runtime/base/checked.h"
#include "runtime/op.h"

namespace oxbow {

/// Rows computed in float at a time before they are quantised, when the output is int8: whole blocks.
inline constexpr size_t kQuantisedRows = 2 * kBlockQueries;

/// Heads that take the keys of one query tile by tile, at most.
inline constexpr size_t kMaxHeadsAtOnce = 16;

/// Where the keys and values of one source are. The views of the schema would not fit the room for
/// parameters.
struct AttentionSource {
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  const float* k_scales = nullptr;
  const float* v_scales = nullptr;
  /// Which ring the rows are in, or -1: they are rows of this run.
  int32_t ring = -1;
  /// Which symbol holds their number if not in a ring; -1: `rows`.
  int32_t rows_symbol = -1;
  uint32_t rows = 0;
  uint32_t pinned = 0;
  /// Unless 0: of rows of four bits, in bytes from one to the next.
  size_t packed_k_stride = 0;
  size_t packed_v_stride = 0;
};

struct AttentionParams {
  Tensor q, out;
  AttentionSource source[kMaxAttentionSources];
  size_t sources = 0;
  size_t heads = 0;
  size_t kv_heads = 0;
  /// How many of them one thread serves at once when there is one query.
  size_t heads_at_once = 1;
  AttentionShape shape;
  AttentionTerms terms;
  PatternParams pattern;
  /// Terms have a say in what is seen, and not the pattern alone.
  bool filters = false;
  bool own = true;
  /// Where the log-sum-exp of every row and head goes, if there is a second output.
  float* log_sums = nullptr;
  /// Of a circle behind a ring: the second output, the codes of this run's rows.
  int32_t* codes = nullptr;

  /// The one for the type of the keys.
  const AttentionKernel<float>* f32_kernel = nullptr;
  const AttentionKernel<int8_t>* i8_kernel = nullptr;
  /// For rows of an I8 output.
  QuantizeKernel quantize = nullptr;

  // The scratch, in bytes from its start: rows in float if the output is int8, the turns of the mask,
  // the list of global rows, then a part for each worker.
  size_t turns_at = 0;
  size_t globals_at = 0;
  size_t workers_at = 0;
  /// In a circle that is sorted or behind a ring: what rows are summed up in, and the part of a worker.
  size_t sums_at = 0;
  /// Behind a ring: the order of a first run.
  size_t orders_at = 0;
  size_t worker_bytes = 0;
  /// Some source has rows of four bits.
  bool packed = false;
};

/// Rows of the output that are computed before they are quantised, at most.
inline size_t float_rows(const AttentionParams& params, size_t rows) {
  return params.out.type == DataType::kI8 ? std::min(rows, kQuantisedRows) : rows;
}

inline size_t head_scratch_bytes(const AttentionParams& params) {
  return attention_scratch_bytes(params.shape, params.terms.has(schema::TermKind::PinnedQuery));
}

/// Tasks of one thread at a time, at most: heads of one query, or queries of one head.
inline size_t tasks_at_once(const AttentionParams& params) {
  return std::max(params.heads_at_once, std::min<size_t>(params.q.rows, kBlockQueries));
}

/// What one worker has: scratch of its tasks, then room for keys that are unpacked.
inline size_t worker_task_bytes(const AttentionParams& params) {
  return tasks_at_once(params) * head_scratch_bytes(params);
}

/// In attention.cc.
RunFunction attention_run_function(DataType keys);

/// In sorted_run.cc: with rows that are sorted before they are cut into chunks, and the scratch of one worker; false:
/// its size does not fit.
RunFunction sorted_run_function(DataType keys);
bool sorted_scratch_bytes(const AttentionParams& params, uint64_t* bytes);

/// The same of cached_run.cc: a circle behind a ring.
RunFunction cached_run_function(DataType keys);
bool cached_scratch_bytes(const AttentionParams& params, uint64_t* bytes);
inline bool is_cached_circle(const AttentionParams& params) {
  return params.pattern.kind == schema::PatternKind::Circle && params.sources == 2;
}

}  // namespace oxbow
