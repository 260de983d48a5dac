#pragma once

// The part of `open` that reads the graph: after it, every index is in range, every tensor lies inside its region,
// and no two tensors that are alive together share a byte. Takes time in proportion to the graph's bytes, whatever
// is in them.

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"

namespace oxbow::schema {
struct Model;
}

namespace oxbow {

/// Of one offload: a chain of dense layers. Whoever looks at an offload walks its steps.
inline constexpr uint32_t kMaxOffloadSteps = 64;

Status check_plan(const schema::Model& graph, uint64_t graph_bytes, uint64_t data_bytes,
                  Error* error);

}  // namespace oxbow
