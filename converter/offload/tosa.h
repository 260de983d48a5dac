#pragma once

// A dense layer as a TOSA graph, the language that Arm's compiler reads: one CONV2D of a single pixel whose results are the int32
// sums.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/offload/offload.h"

namespace oxbow::convert {

/// The bytes of a .tosa file, the same for the same layer.
std::vector<std::byte> tosa_graph(const DenseCodes& layer, uint32_t rows);

}  // namespace oxbow::convert
