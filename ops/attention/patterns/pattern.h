#pragma once

// All patterns behind one function, with the parameters of any of them.

#include <cstdint>

#include "ops/attention/patterns/block_1d.h"
#include "ops/attention/patterns/block_2d.h"
#include "ops/attention/patterns/causal.h"
#include "ops/attention/patterns/chunked.h"
#include "ops/attention/patterns/fixed.h"
#include "ops/attention/patterns/full.h"
#include "ops/attention/patterns/prefix.h"
#include "ops/attention/patterns/slot_span.h"
#include "ops/attention/patterns/strided.h"
#include "ops/attention/patterns/window.h"
#include "schema/model_generated.h"

namespace oxbow {

/// schema::Pattern after bind has checked it; means the same.
struct PatternParams {
  schema::PatternKind kind = schema::PatternKind::Causal;
  uint32_t before = 0;
  uint32_t after = 0;
  /// One for each head, or one for all when `dilations` is 1. In the model file.
  const uint32_t* dilation = nullptr;
  uint32_t dilations = 0;
  uint32_t first = 0;
  uint32_t length = 1;
  bool wrap = false;
  bool causal = false;
  uint32_t summary = 0;
  uint32_t summary_sets = 1;
  uint32_t image_width = 1;
  uint32_t block_width = 1;
};

inline uint64_t dilation_of(const PatternParams& p, uint64_t head) {
  return p.dilations == 0 ? 1 : p.dilation[p.dilations == 1 ? 0 : head];
}

/// Whether heads see different slots.
inline bool depends_on_head(const PatternParams& p) {
  return (p.kind == schema::PatternKind::Window && p.dilations > 1) ||
         (p.kind == schema::PatternKind::Fixed && p.summary_sets > 1);
}

/// Emits what the query at slot `query` sees of slots [0, slots) with this head.
template <typename Emit>
void visit_pattern(const PatternParams& p, uint64_t head, uint64_t query, uint64_t slots,
                   const Emit& emit) {
  if (slots == 0) return;
  switch (p.kind) {
    case schema::PatternKind::Causal:
      return CausalPattern{}.visit(query, slots, emit);
    case schema::PatternKind::Full:
      return FullPattern{}.visit(query, slots, emit);
    case schema::PatternKind::Window:
      return WindowPattern{p.before, p.after, dilation_of(p, head), p.first, p.causal}.visit(
          query, slots, emit);
    case schema::PatternKind::Prefix:
      return PrefixPattern{p.length}.visit(query, slots, emit);
    case schema::PatternKind::Chunked:
      return ChunkedPattern{p.length, p.before, p.after, p.wrap, p.causal}.visit(query, slots,
                                                                                 emit);
    case schema::PatternKind::Strided:
      return StridedPattern{p.before, p.length}.visit(query, slots, emit);
    case schema::PatternKind::Fixed:
      return FixedPattern{p.length, p.summary, uint64_t{p.summary} * (head % p.summary_sets)}.visit(
          query, slots, emit);
    case schema::PatternKind::Block1D:
      return Block1DPattern{p.length, p.before}.visit(query, slots, emit);
    case schema::PatternKind::Block2D:
      return Block2DPattern{p.image_width, p.length, p.block_width, p.before, p.after}.visit(
          query, slots, emit);
  }
}

}  // namespace oxbow
