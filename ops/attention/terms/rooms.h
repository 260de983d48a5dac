#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// Tables are read as if these rings were full: what they have room for is added to every distance.
struct RoomsTerm {
  static constexpr size_t kInputs = 1;
  static constexpr size_t kMostInputs = 2;

  int32_t rings[kMostInputs] = {-1, -1};

  /// Adds their capacities to relative_zero; what they hold is taken away again in each run.
  static Place place(const TermView&, size_t /*index*/) {
    return {.name = "state",
            .role = Role::kState,
            .types = kF32 | kI8 | kI32,
            .rows = Rows::pinned_ring()};
  }

  Status bind(TermBinding& binding) {
    if (binding.shape.distances == 0) {
      return binding.context.fail("has rings that tables are read by, but no table");
    }
    for (size_t i = 0; i < binding.use.inputs; ++i) {
      const Tensor state = binding.input(i);
      rings[i] = state.ring;
      binding.shape.relative_zero += binding.context.ring_capacity(state.ring);
    }
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
