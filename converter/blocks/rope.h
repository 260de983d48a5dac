#pragma once

// Frequencies of rotary positions.

#include <cstdint>
#include <string>
#include <vector>

namespace oxbow::convert {

/// theta^(-2i/width) for the width / 2 pairs of a head's first `width` elements.
std::vector<float> rope_frequencies(double theta, uint32_t width);

class Checkpoint;

/// Of the first part of a head, which `key` of config.json told. Refuses a part that makes no pairs.
std::vector<float> partial_rope_frequencies(const Checkpoint& checkpoint, double theta,
                                            uint32_t head_width, double part,
                                            const std::string& key);

}  // namespace oxbow::convert
