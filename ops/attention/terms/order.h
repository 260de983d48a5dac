#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// For each head and round the rows in the order in which they are cut into chunks; sorted_run.cc reads it.
struct OrderTerm {
  static constexpr size_t kInputs = 1;

  IndexList order;

  static Place place(const TermView& view, size_t /*index*/) { return view.indices("order"); }

  Status bind(TermBinding& binding) {
    const auto* pattern = binding.options.pattern();
    if (pattern == nullptr || pattern->kind() != schema::PatternKind::Circle) {
      return binding.context.fail("an order of rows needs the pattern Circle");
    }
    order = IndexList::of(binding.input(0));
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
