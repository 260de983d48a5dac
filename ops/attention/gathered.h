#pragma once

// Keys and values of one head that lie anywhere, gathered side by side in the scratch of one worker, and queries that
// meet them; and rows that are mixed of what several rounds give.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/attention/params.h"
#include "runtime/base/math.h"

namespace oxbow {

/// Keys that the queries of one chunk may see.
inline uint64_t chunk_keys(const AttentionParams& params) {
  const PatternParams& pattern = params.pattern;
  // Chunks before and behind are few: CirclePattern::check().
  return uint64_t{pattern.length} * (uint64_t{pattern.before} + 1 + pattern.after);
}

/// Where the parts of the scratch begin.
struct GatheredSizes {
  uint64_t k, v, k_scales, v_scales, rows, head, out, total;
  bool fits;

  GatheredSizes(const AttentionParams& params, uint64_t keys) : total(0), fits(true) {
    const uint64_t element = params.shape.scale_stride == 0 ? sizeof(float) : sizeof(int8_t);
    k = take(keys, params.shape.head_width * element);
    v = take(keys, params.shape.value_width * element);
    k_scales = take(keys, 4);
    v_scales = take(keys, 4);
    rows = take(keys, 4);
    head = take(head_scratch_bytes(params), 1);
    out = take(params.shape.value_width, 4);
  }

 private:
  uint64_t take(uint64_t count, uint64_t size) {
    const uint64_t at = total;
    uint64_t part = 0;
    fits = fits && checked_mul(count, size, &part) && part < SIZE_MAX / 16;
    total = fits ? round_up(total + part, kTensorAlignment) : 0;
    return at;
  }
};

/// False: its size does not fit.
inline bool gathered_bytes(const AttentionParams& params, uint64_t keys, uint64_t* bytes) {
  const GatheredSizes sizes(params, keys);
  *bytes = sizes.total;
  return sizes.fits;
}

template <typename Element>
class GatheredKeys {
 public:
  /// `most` keys, as gathered_bytes() was asked for.
  GatheredKeys(const AttentionParams& params, const AttentionKernel<Element>& kernel, uint64_t most,
               std::byte* scratch)
      : params_(params), kernel_(kernel) {
    const GatheredSizes sizes(params, most);
    k_ = reinterpret_cast<Element*>(scratch + sizes.k);
    v_ = reinterpret_cast<Element*>(scratch + sizes.v);
    k_scales_ = reinterpret_cast<float*>(scratch + sizes.k_scales);
    v_scales_ = reinterpret_cast<float*>(scratch + sizes.v_scales);
    rows_ = reinterpret_cast<uint32_t*>(scratch + sizes.rows);
    state_.scratch = scratch + sizes.head;
    result_ = reinterpret_cast<float*>(scratch + sizes.out);
    shape_ = params.shape;
    shape_.key_stride = shape_.head_width;
    shape_.value_stride = shape_.value_width;
    shape_.scale_stride = std::is_same_v<Element, int8_t> ? 1 : 0;
  }

  void clear() { count_ = 0; }

  /// Row `at` of a source, which is the row `row` of the sequence.
  void add(const AttentionSource& source, size_t at, size_t kv_head, size_t row) {
    const AttentionShape& from = params_.shape;
    std::memcpy(k_ + count_ * from.head_width,
                reinterpret_cast<const Element*>(source.k) + at * from.key_stride +
                    kv_head * from.head_width,
                from.head_width * sizeof(Element));
    std::memcpy(v_ + count_ * from.value_width,
                reinterpret_cast<const Element*>(source.v) + at * from.value_stride +
                    kv_head * from.value_width,
                from.value_width * sizeof(Element));
    if constexpr (std::is_same_v<Element, int8_t>) {
      k_scales_[count_] = source.k_scales[at * from.scale_stride + kv_head];
      v_scales_[count_] = source.v_scales[at * from.scale_stride + kv_head];
    }
    rows_[count_++] = static_cast<uint32_t>(row);
  }

  /// The query with row `row` of the sequence; with a causal pattern it sees no newer ones.
  void attend(const float* q, size_t row, size_t head) {
    query_.q = q + head * shape_.head_width;
    query_.position = query_.row = row;
    query_.head = head;
    kernel_.begin(query_, shape_, params_.terms, &state_, result_);
    tile_.span_count = tile_.keys = 0;
    const bool causal = params_.pattern.causal;
    size_t at = 0;
    while (at < count_) {
      if (causal && rows_[at] > row) {
        ++at;
        continue;
      }
      // The own row, or a stretch of others.
      size_t end = at + 1;
      const bool own = rows_[at] == row;
      while (!own && end < count_ && rows_[end] != row && !(causal && rows_[end] > row)) ++end;
      push(at, end - at, own);
      at = end;
    }
    if (tile_.keys != 0) flush();
    kernel_.end(shape_, params_.terms, &state_, result_);
  }

  /// What attend() gave into what earlier rounds gave: sums[0] is the greatest score so far, sums[1] the sum of the
  /// weights relative to it.
  void mix(float* out, float* sums) const {
    if (state_.sum == 0.0f) return;
    const float most = std::max(sums[0], state_.max);
    const float old_sum = sums[1] * exp_f32(sums[0] - most);
    const float new_sum = state_.sum * exp_f32(state_.max - most);
    const float all = old_sum + new_sum;
    const float keep = old_sum / all, add = new_sum / all;
    for (size_t d = 0; d < shape_.value_width; ++d) out[d] = out[d] * keep + result_[d] * add;
    sums[0] = most;
    sums[1] = all;
  }

 private:
  void push(size_t first, size_t count, bool own) {
    while (count != 0) {
      const size_t part = std::min(count, kAttentionTile - tile_.keys);
      KeySpan<Element>& span = tile_.spans[tile_.span_count++];
      span.k = k_ + first * shape_.key_stride;
      span.v = v_ + first * shape_.value_stride;
      span.k_scales = k_scales_ + first;
      span.v_scales = v_scales_ + first;
      span.count = part;
      span.step = 1;
      span.position = rows_[first];
      span.row = own ? query_.row : kNoRow;
      span.pinned = false;
      tile_.keys += part;
      first += part;
      count -= part;
      if (tile_.keys == kAttentionTile) flush();
    }
  }

  void flush() {
    kernel_.tile(query_, shape_, params_.terms, tile_, &state_, result_);
    tile_.span_count = tile_.keys = 0;
  }

  const AttentionParams& params_;
  const AttentionKernel<Element>& kernel_;
  AttentionShape shape_;
  Element* k_ = nullptr;
  Element* v_ = nullptr;
  float* k_scales_ = nullptr;
  float* v_scales_ = nullptr;
  uint32_t* rows_ = nullptr;
  size_t count_ = 0;
  AttentionQuery query_;
  AttentionState state_ = {};
  KeyTile<Element> tile_;
  float* result_ = nullptr;
};

/// Rows of the output in float, and two numbers of mix() for each of their heads.
struct MixedRows {
  float* out;
  float* sums;
};

inline MixedRows begin_mixed_rows(const RunContext& context, const AttentionParams& params,
                                  size_t rows) {
  Tensor out = params.out;
  const MixedRows mixed = {
      out.type == DataType::kI8 ? reinterpret_cast<float*>(context.scratch) : out.f32(),
      reinterpret_cast<float*>(context.scratch + params.sums_at)};
  std::fill_n(mixed.out, rows * out.width, 0.0f);
  for (size_t i = 0; i < rows * params.heads; ++i) {
    mixed.sums[2 * i] = log_f32(0.0f);
    mixed.sums[2 * i + 1] = 0.0f;
  }
  return mixed;
}

inline void end_mixed_rows(const RunContext& context, const AttentionParams& params, size_t rows) {
  Tensor out = params.out;
  if (out.type != DataType::kI8) return;
  auto* from = reinterpret_cast<float*>(context.scratch);
  parallel_for(context.pool, rows, [&](size_t row, size_t) {
    quantize_into(params.quantize, from + row * out.width, out, row);
  });
}

}  // namespace oxbow
