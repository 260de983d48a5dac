#pragma once

// Whether bytes are a graph whose every offset may be followed: what FlatBuffers' generated verifier says, by one loop over a
// table of all fields (schema/shape.cmake) instead of a function for each of their tables, which were 20 kB.

#include <cstddef>
#include <cstdint>

namespace oxbow {

/// `bytes` is aligned as a model file is. Deeper and more tables than told are refused.
bool verify_graph(const uint8_t* bytes, size_t size, uint32_t max_depth, uint32_t max_tables);

}  // namespace oxbow
