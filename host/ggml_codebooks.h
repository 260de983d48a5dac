#pragma once

// Blocks of ggml's types whose numbers are rows of codebooks or floats of four bits; see ggml_blocks.h.

#include <cstddef>

#include "host/tensor_file.h"

namespace oxbow {

/// False: `dtype` is none of these. Otherwise writes the values of one block.
bool decode_codebook_block(Dtype dtype, const std::byte* block, float* values);

}  // namespace oxbow
