#pragma once

// All patterns of patterns.inc behind a few functions.

#include <cstddef>
#include <cstdint>

#include "ops/attention/patterns/params.h"
#include "ops/attention/patterns/patterns.inc"
#include "ops/attention/patterns/span.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {

/// What the file says; a pattern that is missing is causal.
inline PatternParams read_pattern(const schema::Pattern* from) {
  PatternParams p;
  if (from == nullptr) return p;
  p.kind = from->kind();
  p.before = from->before();
  p.after = from->after();
  if (from->dilation() != nullptr) {
    p.dilation = from->dilation()->data();
    p.dilations = from->dilation()->size();
  }
  p.first = from->first();
  p.length = from->length();
  p.wrap = from->wrap();
  p.causal = from->causal();
  p.summary = from->summary();
  p.summary_sets = from->summary_sets();
  p.image_width = from->image_width();
  p.block_width = from->block_width();
  p.listed = from->listed();
  p.full_up_to = from->full_up_to();
  p.rounds = from->rounds();
  return p;
}

template <typename Pattern_, bool kShader>
struct PatternType {
  using Pattern = Pattern_;
  static constexpr bool kHasShader = kShader;
};

/// call(PatternType) for a kind of the list, `unknown` for any other number.
template <typename Result, typename Call>
Result with_pattern(schema::PatternKind kind, Result unknown, const Call& call) {
  switch (kind) {
#define OXB_LINE(number, Kind, Name, shader)                                   \
  case schema::PatternKind::Kind:                                              \
    static_assert(static_cast<unsigned>(schema::PatternKind::Kind) == number); \
    return call(PatternType<Name, shader>{});
#define OXB_PATTERN(number, Kind, Name) OXB_LINE(number, Kind, Name, true)
#define OXB_CPU_PATTERN(number, Kind, Name) OXB_LINE(number, Kind, Name, false)
#include "ops/attention/patterns/patterns.inc"
#undef OXB_CPU_PATTERN
#undef OXB_PATTERN
#undef OXB_LINE
  }
  return unknown;
}

/// Refuses kinds this library does not know, and what makes no sense. The functions below are for patterns
/// that passed.
inline Status check_pattern(BindContext& context, const PatternParams& p, bool own, size_t heads) {
  if (p.kind > schema::PatternKind::MAX) {
    return context.fail("has an unknown pattern, %u", static_cast<unsigned>(p.kind));
  }
  return with_pattern(p.kind, Status::kOk, [&](auto type) {
    using Pattern = typename decltype(type)::Pattern;
    if constexpr (requires { &Pattern::check; }) {
      return Pattern::check(context, p, own, heads);
    } else {
      return Status::kOk;
    }
  });
}

/// For a pattern that passed.
inline VisitPattern visit_of(schema::PatternKind kind) {
  return with_pattern(kind, VisitPattern{nullptr},
                      [](auto type) -> VisitPattern { return decltype(type)::Pattern::visit; });
}

/// Whether heads see different positions.
inline bool depends_on_head(const PatternParams& p) {
  return with_pattern(p.kind, true, [&](auto type) {
    using Pattern = typename decltype(type)::Pattern;
    if constexpr (requires { &Pattern::depends_on_head; }) {
      return Pattern::depends_on_head(p);
    } else {
      return false;
    }
  });
}

/// Whether every query sees the first positions, more or fewer of them.
inline bool shows_from_start(const PatternParams& p) {
  return with_pattern(p.kind, false, [](auto type) {
    return requires { decltype(type)::Pattern::kFromStart; };
  });
}

/// Whether its spans come in any order, with doubles.
inline bool has_any_order(const PatternParams& p) {
  return with_pattern(p.kind, false, [](auto type) {
    return requires { decltype(type)::Pattern::kAnyOrder; };
  });
}

/// Whether attention.glsl can do it.
inline bool shader_knows(const PatternParams& p) {
  return with_pattern(p.kind, false, [&](auto type) {
    using Pattern = typename decltype(type)::Pattern;
    if constexpr (requires { &Pattern::fits_shader; }) {
      return type.kHasShader && Pattern::fits_shader(p);
    } else {
      return type.kHasShader;
    }
  });
}

}  // namespace oxbow
