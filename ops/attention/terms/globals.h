#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// Keys of the last source whose flag is not 0 are seen whatever the pattern says; seen.h adds them.
struct GlobalsTerm {
  static constexpr size_t kInputs = 1;

  const int32_t* flags = nullptr;

  static Place place(const TermView& view, size_t /*index*/) { return view.row_numbers("flags"); }

  Status bind(TermBinding& binding) {
    flags = binding.input(0).i32();
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
