#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/checks.h"
#include "ops/attention/terms/term.h"

namespace oxbow {

/// For each head and round the rows in the order in which they are cut into chunks; sorted_run.cc reads it.
struct OrderTerm {
  static constexpr size_t kInputs = 1;

  Tensor order;

  Status bind(TermBinding& binding) {
    order = binding.input(0);
    const auto* pattern = binding.options.pattern();
    if (pattern == nullptr || pattern->kind() != schema::PatternKind::Circle) {
      return binding.context.fail("an order of rows needs the pattern Circle");
    }
    return check_index_list(binding, order, "order");
  }

  struct State {};
};

}  // namespace oxbow
