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

/// Collects what one query sees and gives it to the kernel, tile by tile.
template <typename Element>
class KeyStream {
 public:
  /// All of these live longer than the stream. `state` has its scratch.
  KeyStream(const AttentionKernel<Element>& kernel, const AttentionShape& shape,
            const KeyPieces<Element>& pieces, AttentionState* state)
      : kernel_(kernel), shape_(shape), pieces_(pieces), state_(state) {}

  void begin(const AttentionQuery<Element>& query, float* out) {
    query_ = &query;
    out_ = out;
    piece_ = pieces_.pieces;
    tile_.run_count = tile_.keys = 0;
    kernel_.begin(query, shape_, state_, out);
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
    kernel_.end(shape_, state_, out_);
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
    const uint64_t beyond = query_->slot > piece_->reach ? query_->slot - piece_->reach : 0;
    run.slot = static_cast<size_t>(slot + beyond);
    run.pinned = piece_->pinned;
    tile_.keys += count;
    if (tile_.keys == kAttentionTile) flush();
  }

  void flush() {
    kernel_.tile(*query_, shape_, tile_, state_, out_);
    tile_.run_count = tile_.keys = 0;
  }

  const AttentionKernel<Element>& kernel_;
  const AttentionShape& shape_;
  const KeyPieces<Element>& pieces_;
  AttentionState* state_;
  const AttentionQuery<Element>* query_ = nullptr;
  float* out_ = nullptr;
  const KeyPiece<Element>* piece_ = nullptr;
  KeyTile<Element> tile_;
};

}  // namespace oxbow
