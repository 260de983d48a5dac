#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"
#include "ops/common/checks.h"

namespace oxbow {

/// A query sees the keys of the group with its own group's number, in place of those of the pattern: seen.h emits them.
/// Chunks of a text and the neighbours of each (Borgeaud 2022) are such groups.
struct GroupsTerm {
  static constexpr size_t kInputs = 0;
  static constexpr size_t kMostInputs = 1;

  const int32_t* shape = nullptr;
  int32_t shape_symbol = -1;
  uint32_t shape_rows = 0;
  /// Lengths, or 0: so many of the last numbers of the shape tell.
  uint32_t query_length = 0, query_dimensions = 0;
  uint32_t key_length = 0, key_dimensions = 0;

  static Place place(const TermView&, size_t /*index*/) {
    return {.name = "shape", .role = Role::kIds, .types = kI32, .width = Width::exactly(1)};
  }

  Status bind(TermBinding& binding) {
    BindContext& context = binding.context;
    const schema::ScoreTerm& options = *binding.use.options;
    query_length = options.query_length();
    query_dimensions = options.query_dimensions();
    key_length = options.key_length();
    key_dimensions = options.key_dimensions();
    if ((query_length != 0) == (query_dimensions != 0) ||
        (key_length != 0) == (key_dimensions != 0)) {
      return context.fail("groups need a length or a number of dimensions, and not both");
    }
    using Kind = schema::TermKind;
    if (binding.has(Kind::KeyMask) || binding.has(Kind::Globals) || binding.has(Kind::Sides) ||
        binding.has(Kind::AdaptiveSpan)) {
      return context.fail("groups have no masks, flags, sides and spans beside them");
    }
    const bool asks = query_dimensions != 0 || key_dimensions != 0;
    if (asks != (binding.use.inputs == 1)) {
      return context.fail("groups need a shape if their lengths are its numbers, and only then");
    }
    if (!asks) return Status::kOk;
    const Tensor input = binding.input(0);
    shape = input.i32();
    shape_symbol = input.rows_symbol;
    shape_rows = input.rows;
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
