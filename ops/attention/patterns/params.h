#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/patterns/span.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {

struct PatternParams;
/// What a pattern shows: span.h.
using VisitPattern = void (*)(const PatternParams& p, uint64_t head, uint64_t query,
                              uint64_t positions, SpanSink emit);

/// schema::Pattern in a form that is quick to read; means the same.
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
  uint32_t listed = 0;
  uint32_t full_up_to = 0;
  uint32_t rounds = 1;
  /// Of the step.
  uint32_t heads = 1;

  /// That of its kind, picked at bind.
  VisitPattern visit = nullptr;

  // Of a run: the list of blocks, null for block 0 everywhere, and which position of the stream position 0 is.
  const int32_t* list = nullptr;
  uint64_t origin = 0;
};

/// Of patterns with a length.
inline Status check_length(BindContext& context, const PatternParams& p) {
  if (p.length != 0) return Status::kOk;
  return context.fail("pattern %s has the length 0", schema::EnumNamePatternKind(p.kind));
}

}  // namespace oxbow
