#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// For each head and round the rows in the order in which they are cut into chunks; sorted_run.cc reads it. Behind a ring
/// the buckets of this run's rows, and those of earlier ones, as cached_run.cc keeps them.
struct OrderTerm {
  static constexpr size_t kInputs = 1, kMostInputs = 2;

  IndexList order;
  /// Of the values of `order`.
  uint32_t limit = 0;
  uint32_t rounds = 1;
  /// Of earlier rows.
  bool has_kept = false;
  const int32_t* kept = nullptr;

  /// How many there are in a round: values are below those of all rounds, and one more for each.
  uint64_t buckets() const { return limit / rounds > 1 ? limit / rounds - 1 : 1; }

  static Place place(const TermView& view, size_t index) {
    if (index == 0) return view.indices("order");
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
    has_kept = binding.use.inputs == 2;
    if (has_kept) kept = Tensor(binding.input(1)).i32();
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
