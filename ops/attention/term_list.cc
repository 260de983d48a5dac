// Reads the terms of a step from its options: what flags of older files mean is only said here.

#include "ops/attention/terms/terms.h"

namespace oxbow {
namespace {

using Kind = schema::TermKind;

/// Of a kind of the list: the least and the most inputs.
struct InputCounts {
  size_t least, most;
};

template <typename Term>
constexpr InputCounts input_counts() {
  if constexpr (requires { Term::kMostInputs; }) {
    return {Term::kInputs, Term::kMostInputs};
  } else {
    return {Term::kInputs, Term::kInputs};
  }
}

InputCounts input_counts(Kind kind) {
  switch (kind) {
#define OXB_TERM(number, Kind, Name, member)                                \
  case schema::TermKind::Kind:                                              \
    static_assert(static_cast<unsigned>(schema::TermKind::Kind) == number); \
    return input_counts<Name>();
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
  }
  return {};
}

void add(Kind kind, size_t inputs, const schema::ScoreTerm* options, TermList* list) {
  const auto refuse = [&](const char* problem) {
    if (list->problem != nullptr) return;
    list->problem = problem;
    list->refused = static_cast<unsigned>(kind);
  };
  if (kind > Kind::MAX) return refuse("is unknown");
  if (list->has(kind)) return refuse("is there twice");
  const InputCounts counts = input_counts(kind);
  if (inputs < counts.least || inputs > counts.most) return refuse("has a wrong number of inputs");
  list->terms[list->count++] = {kind, list->inputs, inputs, options};
  list->inputs += inputs;
}

}  // namespace

TermList list_terms(const schema::AttentionOptions& options) {
  TermList list;
  const auto flag = [&](bool is_set, Kind kind) {
    if (is_set) add(kind, input_counts(kind).least, nullptr, &list);
  };
  // The order of the inputs.
  flag(options.relative(), Kind::Relative);
  flag(options.relative_keys(), Kind::RelativeKeys);
  flag(options.distance_bias(), Kind::DistanceBias);
  flag(options.alibi(), Kind::Alibi);
  flag(options.segments(), Kind::Segments);
  flag(options.key_mask(), Kind::KeyMask);
  flag(options.globals(), Kind::Globals);
  flag(options.pinned_query(), Kind::PinnedQuery);
  if (options.rooms() != 0) add(Kind::Rooms, options.rooms(), nullptr, &list);
  if (options.terms() != nullptr) {
    for (const schema::ScoreTerm* term : *options.terms()) {
      if (list.problem == nullptr) add(term->kind(), term->inputs(), term, &list);
    }
  }
  const size_t first = 1 + 2 * size_t{options.sources()};
  for (size_t i = 0; i < list.count; ++i) list.terms[i].first_input += first;
  return list;
}

namespace {

template <typename Term>
Place place_of(const TermView& view, size_t index) {
  if constexpr (requires { &Term::place; }) {
    return Term::place(view, index);
  } else {
    return {};
  }
}

}  // namespace

Place term_place(const TermList& list, size_t input, TermView view) {
  const TermUse* use = list.terms;
  while (input >= use->first_input + use->inputs) ++use;
  view.first_input = static_cast<uint8_t>(use->first_input);
  const size_t index = input - use->first_input;
  switch (use->kind) {
#define OXB_TERM(number, Kind, Name, member) \
  case schema::TermKind::Kind:               \
    return place_of<Name>(view, index);
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
  }
  return {};
}

bool shader_knows(const TermList& list) {
  for (size_t i = 0; i < list.count; ++i) {
    bool known = false;
    switch (list.terms[i].kind) {
#define OXB_TERM(number, Kind, Name, member) \
  case schema::TermKind::Kind:               \
    known = true;                            \
    break;
#define OXB_CPU_TERM(number, Kind, Name, member) \
  case schema::TermKind::Kind:                   \
    break;
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
    }
    if (!known) return false;
  }
  return true;
}

}  // namespace oxbow
