#pragma once

#include <cstddef>

#include "ops/attention/terms/checks.h"
#include "ops/attention/terms/term.h"

namespace oxbow {

/// In the products with the keys of pinned rows (attention sinks) this stands for q.
struct PinnedQueryTerm {
  static constexpr size_t kInputs = 1;

  const float* q = nullptr;

  Status bind(TermBinding& binding) {
    const Tensor input = binding.input(0);
    OXB_TRY(
        check_matrix(binding.context, input, "pinned query", DataType::kF32, binding.q.width, 0));
    OXB_TRY(check_run_rows(binding.context, binding.q, input, "pinned query"));
    q = input.f32();
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
