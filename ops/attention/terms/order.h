#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// For each head and round the rows in the order in which they are cut into chunks; sorted_run.cc reads it. Behind a ring
/// the buckets of this run's rows, those of earlier ones, as cached_run.cc keeps them, and perhaps buckets that are taken
/// instead of the first if there are any.
struct OrderTerm {
  static constexpr size_t kInputs = 1, kMostInputs = 3;

  IndexList order;
  /// Of the values of `order`.
  uint32_t limit = 0;
  uint32_t rounds = 1;
  /// Of earlier rows.
  bool has_kept = false;
  const int32_t* kept = nullptr;
  bool may_be_given = false;
  IndexList given;

  /// How many there are in a round: values are below those of all rounds, and one more for each.
  uint64_t buckets() const { return limit / rounds > 1 ? limit / rounds - 1 : 1; }

  static Place place(const TermView& view, size_t index) {
    if (index == 0) return view.indices("order");
    if (index == 2) return view.indices("given");
    return {.name = "codes", .role = Role::kState, .types = kI32, .rows = Rows::same_ring(1)};
  }

  Status bind(TermBinding& binding) {
    const auto* pattern = binding.options.pattern();
    if (pattern == nullptr || pattern->kind() != schema::PatternKind::Circle) {
      return binding.context.fail("an order of rows needs the pattern Circle");
    }
    order = IndexList::of(binding.input(0));
    limit = binding.input(0).limit;
    rounds = pattern->rounds() == 0 ? 1 : pattern->rounds();
    has_kept = binding.use.inputs >= 2;
    if (has_kept) kept = Tensor(binding.input(1)).i32();
    may_be_given = binding.use.inputs == 3;
    if (may_be_given) given = IndexList::of(binding.input(2));
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
