#pragma once

// The part of `open` that reads the graph: after it, every index is in range, every tensor lies inside
// its region, and no two tensors that are alive together share a byte.

#include <cstdint>

#include "runtime/base/status.h"

namespace oxbow::schema {
struct Model;
}

namespace oxbow {

Status check_plan(const schema::Model& graph, uint64_t data_bytes, Error* error);

}  // namespace oxbow
