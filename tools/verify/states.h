#pragma once

// States lie in memory as ops want them; references have the same numbers with other dimensions in front.

#include <cstdint>
#include <vector>

#include "tools/verify/outcome.h"

namespace oxbow::tools {

/// A state in the order of a reference whose dimensions, without the one for streams, are `shape`:
///   [heads, rows, head width]   a memory of rows, each of all heads side by side
///   [heads, columns, rows]      `transposed`; of a memory's rows, which have one head, there may be more: the
///                               oldest are not compared, as the model has no use for them
/// Anything else is left as it is.
Produced in_reference_order(const Produced& state, const std::vector<uint64_t>& shape,
                            bool transposed);

}  // namespace oxbow::tools
