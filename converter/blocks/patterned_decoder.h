#pragma once

// Decoders whose layers see patterns of the past, in the layout of examples/patterned_decoders_torch.py: words and learned
// positions, layers with projections of their own for queries, keys and values, a head.

#include <string>
#include <vector>

#include "converter/blocks/decoder.h"

namespace oxbow::convert {

/// With all that does not depend on patterns or the place of norms. `length` is that of the table of positions.
Decoder read_patterned_decoder(const Checkpoint& checkpoint, uint32_t length,
                               const std::string& length_key);

/// The names in `attention`, one for each layer; fewer are repeated.
std::vector<std::string> read_layer_patterns(const Checkpoint& checkpoint, uint32_t layers,
                                             const std::vector<std::string>& known);

}  // namespace oxbow::convert
