#pragma once

// All terms of terms.inc together: those of a file's step as a list, and those of a bound step.

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"
#include "ops/attention/terms/terms.inc"
#include "schema/model_generated.h"

namespace oxbow {

/// The terms of a step, whether the file tells them as flags or as a list.
struct TermList {
  TermUse terms[kTermKinds];
  size_t count = 0;
  /// In all of them.
  size_t inputs = 0;
  /// Null, or what is wrong with the kind `refused`.
  const char* problem = nullptr;
  unsigned refused = 0;

  const TermUse* find(schema::TermKind kind) const {
    for (size_t i = 0; i < count; ++i) {
      if (terms[i].kind == kind) return terms + i;
    }
    return nullptr;
  }
  bool has(schema::TermKind kind) const { return find(kind) != nullptr; }
};

TermList list_terms(const schema::AttentionOptions& options);

/// What an input of a step with these terms must be, which is its place in the step's list; it belongs to one of them.
Place term_place(const TermList& list, size_t input, TermView view);

/// Whether attention.glsl has all of them.
bool shader_knows(const TermList& list);

/// What bind found out about the terms of a step.
struct AttentionTerms {
#define OXB_TERM(number, Kind, Name, member) Name member;
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
  /// Bit i: there is the kind i.
  uint32_t kinds = 0;

  [[gnu::always_inline]] bool has(schema::TermKind kind) const {
    return (kinds >> static_cast<unsigned>(kind) & 1) != 0;
  }
};
static_assert(kTermKinds <= 32);

/// What the terms keep for one query.
struct TermStates {
#define OXB_TERM(number, Kind, Name, member) [[no_unique_address]] Name::State member;
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
};

/// call(term, state) for each term that there is, in the order of the list.
template <typename States, typename Call>
[[gnu::always_inline]] inline void for_each_term(const AttentionTerms& terms, States& states,
                                                 const Call& call) {
#define OXB_TERM(number, Kind, Name, member) \
  if (terms.has(schema::TermKind::Kind)) call(terms.member, states.member);
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
}

/// call(term) for each term that there is.
template <typename Call>
[[gnu::always_inline]] inline void for_each_term(const AttentionTerms& terms, const Call& call) {
#define OXB_TERM(number, Kind, Name, member) \
  if (terms.has(schema::TermKind::Kind)) call(terms.member);
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
}

}  // namespace oxbow
