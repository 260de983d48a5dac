#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/checks.h"
#include "ops/attention/terms/term.h"

namespace oxbow {

/// Keys of the last source whose flag is not 0 are seen whatever the pattern says; seen.h adds them.
struct GlobalsTerm {
  static constexpr size_t kInputs = 1;

  const int32_t* flags = nullptr;

  Status bind(TermBinding& binding) {
    const Tensor input = binding.input(0);
    OXB_TRY(check_row_numbers(binding, input, "flags"));
    flags = input.i32();
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
