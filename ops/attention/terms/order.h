#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/checks.h"
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

  Status bind(TermBinding& binding) {
    const auto* pattern = binding.options.pattern();
    if (pattern == nullptr || pattern->kind() != schema::PatternKind::Circle) {
      return binding.context.fail("an order of rows needs the pattern Circle");
    }
    limit = binding.input(0).limit;
    rounds = pattern->rounds() == 0 ? 1 : pattern->rounds();
    has_kept = binding.use.inputs == 2;
    if (has_kept) {
      const Tensor codes = binding.input(1);
      OXB_TRY(check_matrix(binding.context, codes, "codes", DataType::kI32,
                           binding.heads * uint64_t{rounds}, 0));
      kept = codes.i32();
    }
    return bind_index_list(binding, "order", &order);
  }

  struct State {};
};

}  // namespace oxbow
