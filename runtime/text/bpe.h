#pragma once

// Byte-pair encoding: neighbours are joined, the pair of the lowest rank first and the leftmost of
// equal ones, until no two neighbours join.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/text/tables/merges.h"

namespace oxbow {

struct Symbol {
  /// kNoPiece joins with nothing.
  uint32_t piece;
  /// Bytes of the text it stands for.
  uint32_t bytes;
};

/// Scratch for merge_symbols(), for as many symbols as this at most.
size_t merge_scratch_bytes(size_t max_symbols);

/// Joins in place; the symbols that are left come first, and their number is returned. `scratch` is
/// aligned for uint32_t.
size_t merge_symbols(const MergeTable& merges, std::span<Symbol> symbols,
                     std::span<std::byte> scratch);

}  // namespace oxbow
