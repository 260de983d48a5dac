#pragma once

// Frequencies of rotary positions.

#include <cstdint>
#include <vector>

namespace oxbow::convert {

/// theta^(-2i/width) for the width / 2 pairs of a head's first `width` elements.
std::vector<float> rope_frequencies(double theta, uint32_t width);

}  // namespace oxbow::convert
