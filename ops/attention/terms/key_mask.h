#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// Keys of the last source whose mask is 0 are not seen; seen.h passes over them.
struct KeyMaskTerm {
  static constexpr size_t kInputs = 1;

  const int32_t* mask = nullptr;
  /// Queries whose mask is 0 give zeros; a query sees its own row whatever its mask is.
  bool masks_queries = false;
  bool keeps_own = false;

  static Place place(const TermView& view, size_t /*index*/) { return view.row_numbers("mask"); }

  Status bind(TermBinding& binding) {
    mask = binding.input(0).i32();
    masks_queries = binding.options.mask_queries();
    keeps_own = binding.options.mask_keeps_own();
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
