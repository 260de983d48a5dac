#pragma once

// Weights as an Ethos-U reads them: a stream of bits that Vela encoded.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oxbow::testing {

/// All weights of the stream, at most `most`; false when the stream is broken.
bool decode_ethosu_weights(std::span<const std::byte> bytes, size_t most,
                           std::vector<int16_t>* weights);

}  // namespace oxbow::testing
