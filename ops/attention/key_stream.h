#pragma once

// From positions to memory: spans of positions, in ascending order, become spans of keys that lie at equal
// distances in one range of memory, and these become tiles for the kernel.
//
//   positions   0 1 2 3 4 5 6 7 8 9 ...            of positions   {2, 4, 2}: 2, 4, 6, 8
//   ranges      [pinned][ring   ][ring][own ...    of keys        {4, 6} of one range, {2}, {8} of others
//               rows     from    up to this
//                        head    head  run

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention.h"
#include "ops/attention/patterns/span.h"

namespace oxbow {

/// Pinned rows, and the two parts of a ring that goes round.
inline constexpr size_t kMaxKeyRanges = 3 * kMaxAttentionSources;

/// Positions [first, end), one row after the other in memory; of one key/value head.
template <typename Element>
struct KeyRange {
  uint64_t first;
  uint64_t end;
  const Element* k;
  const Element* v;
  const float* k_scales;
  const float* v_scales;
  /// Row of the first in the last source, or kNoRow.
  uint64_t row;
  bool pinned;
  /// Distances to these keys count a query beyond this position as if it were there.
  uint64_t reach;
};

/// All keys there are, for one key/value head.
template <typename Element>
struct KeyRanges {
  KeyRange<Element> ranges[kMaxKeyRanges];
  size_t count;
};

/// Collects what one query sees and gives it to the kernel, tile by tile. Several heads that see the
/// same positions take each tile in turn: their keys lie side by side, and memory gives whole rows faster
/// than columns of them. Or they are a block: queries with one head of keys, of which each sees the first
/// keys of those pushed, as many as its task says are to come.
template <typename Element>
class KeyStream {
 public:
  /// All of these live longer than the stream. `ranges` are of the first head.
  KeyStream(const AttentionKernel<Element>& kernel, const AttentionShape& shape,
            const AttentionTerms& terms, const KeyRanges<Element>& ranges,
            std::span<HeadTask> heads, bool block = false)
      : kernel_(kernel),
        shape_(shape),
        terms_(terms),
        ranges_(ranges),
        heads_(heads),
        is_block_(block) {}

  void begin() {
    range_ = ranges_.ranges;
    // One head alone reads keys that its other queries have just read, and small memories stay in the
    // caches from token to token.
    const uint64_t positions = ranges_.count == 0 ? 0 : ranges_.ranges[ranges_.count - 1].end;
    looks_ahead_ = !is_block_ && heads_.size() > 1 &&
                   positions * shape_.key_stride * sizeof(Element) > kCachedBytes;
    tile_.span_count = tile_.keys = 0;
    for (HeadTask& head : heads_) {
      kernel_.begin(head.query, shape_, terms_, &head.state, head.out);
    }
  }

  /// The next keys; each is newer than all before.
  void push(PositionSpan span) {
    while (span.count != 0) {
      while (span.first >= range_->end) ++range_;
      const uint64_t inside = (range_->end - span.first + span.step - 1) / span.step;
      const uint64_t room = kAttentionTile - tile_.keys;
      const uint64_t count = smaller(smaller(span.count, inside), room);
      add_keys(span.first, static_cast<size_t>(count), span.step);
      span.first += count * span.step;
      span.count -= count;
    }
  }

  void end() {
    if (tile_.keys != 0) flush();
    for (HeadTask& head : heads_) kernel_.end(shape_, terms_, &head.state, head.out);
  }

 private:
  void add_keys(uint64_t position, size_t count, uint64_t step) {
    const auto row = static_cast<size_t>(position - range_->first);
    KeySpan<Element>& span = tile_.spans[tile_.span_count++];
    span.k = range_->k + row * shape_.key_stride;
    span.v = range_->v + row * shape_.value_stride;
    span.k_scales = nullptr;
    span.v_scales = nullptr;
    if (shape_.scale_stride != 0) {
      span.k_scales = range_->k_scales + row * shape_.scale_stride;
      span.v_scales = range_->v_scales + row * shape_.scale_stride;
    }
    span.row = range_->row == kNoRow ? kNoRow : range_->row + row;
    span.count = count;
    // A step that is not taken may lead anywhere.
    span.step = count == 1 ? 1 : static_cast<size_t>(step);
    const uint64_t query = heads_[0].query.position;
    const uint64_t beyond = query > range_->reach ? query - range_->reach : 0;
    span.position = static_cast<size_t>(position + beyond);
    span.pinned = range_->pinned;
    tile_.keys += count;
    if (tile_.keys == kAttentionTile) flush();
  }

  void flush_block() {
    HeadTask* tasks[kBlockQueries];
    size_t count = 0;
    for (HeadTask& head : heads_) {
      if (head.to_come == 0) continue;
      head.seen = static_cast<size_t>(smaller(head.to_come, tile_.keys));
      head.to_come -= head.seen;
      tasks[count++] = &head;
    }
    tile_.keys_ahead.rows = tile_.values_ahead.rows = nullptr;
    if (count != 0) kernel_.block(tasks, count, shape_, terms_, tile_);
    tile_.span_count = tile_.keys = 0;
  }

  void flush() {
    if (is_block_) return flush_block();
    size_t kv_head = 0;
    for (size_t h = 0; h < heads_.size(); ++h) {
      move_spans(heads_[h].kv_head - kv_head);
      kv_head = heads_[h].kv_head;
      look_ahead(h);
      kernel_.tile(heads_[h].query, shape_, terms_, tile_, &heads_[h].state, heads_[h].out);
    }
    tile_.span_count = tile_.keys = 0;
  }

  /// To a head so many further on.
  void move_spans(size_t kv_heads) {
    if (kv_heads == 0) return;
    for (size_t s = 0; s < tile_.span_count; ++s) {
      KeySpan<Element>& span = tile_.spans[s];
      span.k += kv_heads * shape_.head_width;
      span.v += kv_heads * shape_.value_width;
      if (shape_.scale_stride != 0) {
        span.k_scales += kv_heads;
        span.v_scales += kv_heads;
      }
    }
  }

  /// The next tile likely follows this one in memory; each head asks for a part of it. Where that is
  /// wrong nothing is lost.
  void look_ahead(size_t h) {
    const KeySpan<Element>& span = tile_.spans[tile_.span_count - 1];
    tile_.keys_ahead.rows = tile_.values_ahead.rows = nullptr;
    if (!looks_ahead_ || span.step != 1) return;
    look_ahead(h, span.k + span.count * shape_.key_stride, shape_.key_stride, shape_.head_width,
               &tile_.keys_ahead);
    look_ahead(h, span.v + span.count * shape_.value_stride, shape_.value_stride,
               shape_.value_width, &tile_.values_ahead);
  }

  /// `next` is behind what head h has of the last row.
  void look_ahead(size_t h, const Element* next, size_t stride, size_t width,
                  RowsAhead<Element>* ahead) {
    ahead->rows = next - heads_[h].kv_head * width;
    ahead->stride = stride * sizeof(Element);
    ahead->row_lines = ceil_div((heads_.back().kv_head + 1) * width * sizeof(Element), kCacheLine);
    const size_t all = kAttentionTile * ahead->row_lines;
    ahead->first = all * h / heads_.size();
    ahead->count = all * (h + 1) / heads_.size() - ahead->first;
  }

  /// Of the keys of all heads that are expected to be near anyway.
  static constexpr size_t kCachedBytes = 128 * 1024;

  const AttentionKernel<Element>& kernel_;
  const AttentionShape& shape_;
  const AttentionTerms& terms_;
  const KeyRanges<Element>& ranges_;
  std::span<HeadTask> heads_;
  bool is_block_;
  bool looks_ahead_ = false;
  const KeyRange<Element>* range_ = nullptr;
  KeyTile<Element> tile_;
};

}  // namespace oxbow
