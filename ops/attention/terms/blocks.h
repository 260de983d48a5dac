#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/term.h"

namespace oxbow {

/// The blocks that a pattern of listed blocks has besides its own; a caller's, so that each run checks them.
struct BlocksTerm {
  static constexpr size_t kInputs = 1;

  IndexList list;

  static Place place(const TermView& view, size_t /*index*/) { return view.indices("blocks"); }

  Status bind(TermBinding& binding) {
    const auto* pattern = binding.options.pattern();
    if (pattern == nullptr || pattern->kind() != schema::PatternKind::ListedBlocks) {
      return binding.context.fail("a list of blocks needs the pattern ListedBlocks");
    }
    list = IndexList::of(binding.input(0));
    return Status::kOk;
  }

  struct State {};
};

}  // namespace oxbow
