#pragma once

#include <cstddef>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// In the products with the keys of pinned rows (attention sinks) this stands for q.
struct PinnedQueryTerm {
  static constexpr size_t kInputs = 1;

  const float* q = nullptr;

  static Place place(const TermView& view, size_t /*index*/) {
    return {.name = "pinned query", .width = Width::exactly(view.q_width), .rows = Rows::of(0)};
  }

  Status bind(TermBinding& binding) {
    q = binding.input(0).f32();
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
