#pragma once

// Dense layers as TOSA graphs, the language that Arm's compiler reads: CONV2D of single pixels. One alone gives the int32 sums;
// in a chain each is followed by a RESCALE to int8 with a factor for each channel, rounded in integers, and by a CLAMP or a
// TABLE where the layer has one.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/offload/offload.h"

namespace oxbow::convert {

/// The bytes of a .tosa file, the same for the same layer.
std::vector<std::byte> tosa_graph(const DenseCodes& layer, uint32_t rows);
std::vector<std::byte> tosa_graph(const Chain& chain, uint32_t rows);

}  // namespace oxbow::convert
