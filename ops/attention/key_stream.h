#pragma once

// From slots to memory: spans of slots, in ascending order, become runs of keys that lie at equal
// distances, and runs become tiles for the kernel.
//
//   slots    0 1 2 3 4 5 6 7 8 9 ...            spans    {2, 4, 2}: slots 2, 4, 6, 8
//   pieces   [pinned][ring   ][ring][own ...    runs     {4, 6} of one piece, {2}, {8} of others
//            rows     from    up to this
//                     head    head  run

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention.h"
#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// Pinned rows, and the two parts of a ring that goes round.
inline constexpr size_t kMaxKeyPieces = 3 * kMaxAttentionSources;

/// Slots [first, end), one row after the other in memory; of one key/value head.
template <typename Element>
struct KeyPiece {
  uint64_t first;
  uint64_t end;
  const Element* k;
  const Element* v;
  const float* k_scales;
  const float* v_scales;
  const int32_t* types;
  bool pinned;
  /// Distances to these keys count a query beyond this slot as if it were there.
  uint64_t reach;
};

/// All keys there are, for one key/value head.
template <typename Element>
struct KeyPieces {
  KeyPiece<Element> pieces[kMaxKeyPieces];
  size_t count;
};

/// What one head does with the keys.
template <typename Element>
struct HeadTask {
  AttentionQuery<Element> query;
  /// Has its scratch.
  AttentionState state = {};
  float* out = nullptr;
  /// Which head of keys and values, counted from that of the first task.
  size_t kv_head = 0;
};

/// Collects what one query sees and gives it to the kernel, tile by tile. Several heads that see the
/// same slots take each tile in turn: their keys lie side by side, and memory gives whole rows faster
/// than columns of them.
template <typename Element>
class KeyStream {
 public:
  /// All of these live longer than the stream. `pieces` are of the first head.
  KeyStream(const AttentionKernel<Element>& kernel, const AttentionShape& shape,
            const KeyPieces<Element>& pieces, std::span<HeadTask<Element>> heads)
      : kernel_(kernel), shape_(shape), pieces_(pieces), heads_(heads) {}

  void begin() {
    piece_ = pieces_.pieces;
    // One head alone reads keys that its other queries have just read, and small memories stay in the
    // caches from token to token.
    const uint64_t slots = pieces_.count == 0 ? 0 : pieces_.pieces[pieces_.count - 1].end;
    looks_ahead_ = heads_.size() > 1 && slots * shape_.key_stride * sizeof(Element) > kCachedBytes;
    tile_.run_count = tile_.keys = 0;
    for (HeadTask<Element>& head : heads_) {
      kernel_.begin(head.query, shape_, &head.state, head.out);
    }
  }

  /// The next keys; each is newer than all before.
  void push(SlotSpan span) {
    while (span.count != 0) {
      while (span.first >= piece_->end) ++piece_;
      const uint64_t inside = (piece_->end - span.first + span.step - 1) / span.step;
      const uint64_t room = kAttentionTile - tile_.keys;
      const uint64_t count = smaller_slot(smaller_slot(span.count, inside), room);
      add_run(span.first, static_cast<size_t>(count), span.step);
      span.first += count * span.step;
      span.count -= count;
    }
  }

  void end() {
    if (tile_.keys != 0) flush();
    for (HeadTask<Element>& head : heads_) kernel_.end(shape_, &head.state, head.out);
  }

 private:
  void add_run(uint64_t slot, size_t count, uint64_t step) {
    const auto row = static_cast<size_t>(slot - piece_->first);
    KeyRun<Element>& run = tile_.runs[tile_.run_count++];
    run.k = piece_->k + row * shape_.key_stride;
    run.v = piece_->v + row * shape_.key_stride;
    run.k_scales = nullptr;
    run.v_scales = nullptr;
    if (shape_.key_scale_stride != 0) {
      run.k_scales = piece_->k_scales + row * shape_.key_scale_stride;
      run.v_scales = piece_->v_scales + row * shape_.key_scale_stride;
    }
    run.types = piece_->types == nullptr ? nullptr : piece_->types + row;
    run.count = count;
    // A step that is not taken may lead anywhere.
    run.step = count == 1 ? 1 : static_cast<size_t>(step);
    const uint64_t query = heads_[0].query.slot;
    const uint64_t beyond = query > piece_->reach ? query - piece_->reach : 0;
    run.slot = static_cast<size_t>(slot + beyond);
    run.pinned = piece_->pinned;
    tile_.keys += count;
    if (tile_.keys == kAttentionTile) flush();
  }

  void flush() {
    size_t kv_head = 0;
    for (size_t h = 0; h < heads_.size(); ++h) {
      move_runs(heads_[h].kv_head - kv_head);
      kv_head = heads_[h].kv_head;
      look_ahead(h);
      kernel_.tile(heads_[h].query, shape_, tile_, &heads_[h].state, heads_[h].out);
    }
    tile_.run_count = tile_.keys = 0;
  }

  /// To a head so many further on.
  void move_runs(size_t kv_heads) {
    if (kv_heads == 0) return;
    for (size_t r = 0; r < tile_.run_count; ++r) {
      KeyRun<Element>& run = tile_.runs[r];
      run.k += kv_heads * shape_.head_width;
      run.v += kv_heads * shape_.head_width;
      if (shape_.key_scale_stride != 0) {
        run.k_scales += kv_heads;
        run.v_scales += kv_heads;
      }
    }
  }

  /// The next tile likely follows this one in memory; each head asks for a part of it. Where that is
  /// wrong nothing is lost.
  void look_ahead(size_t h) {
    const KeyRun<Element>& run = tile_.runs[tile_.run_count - 1];
    RowsAhead<Element>& ahead = tile_.ahead;
    ahead.k = nullptr;
    if (!looks_ahead_ || run.step != 1) return;
    const size_t next = run.count * shape_.key_stride - heads_[h].kv_head * shape_.head_width;
    ahead.k = run.k + next;
    ahead.v = run.v + next;
    const size_t row_bytes = (heads_.back().kv_head + 1) * shape_.head_width * sizeof(Element);
    ahead.stride = shape_.key_stride * sizeof(Element);
    ahead.row_lines = ceil_div(row_bytes, kCacheLine);
    const size_t all = kAttentionTile * ahead.row_lines;
    ahead.first = all * h / heads_.size();
    ahead.count = all * (h + 1) / heads_.size() - ahead.first;
  }

  /// Of the keys of all heads that are expected to be near anyway.
  static constexpr size_t kCachedBytes = 128 * 1024;

  const AttentionKernel<Element>& kernel_;
  const AttentionShape& shape_;
  const KeyPieces<Element>& pieces_;
  std::span<HeadTask<Element>> heads_;
  bool looks_ahead_ = false;
  const KeyPiece<Element>* piece_ = nullptr;
  KeyTile<Element> tile_;
};

}  // namespace oxbow
