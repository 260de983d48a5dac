#pragma once

// ggml's blocks: 32, 64 or 256 consecutive elements of a row that share scales. The layouts are those of its
// files (GGUF), little endian, packed without gaps.

#include <cstddef>

#include "host/tensor_file.h"

namespace oxbow {

inline constexpr size_t kMaxGgmlBlock = 256;

/// Writes the dtype_block(dtype) values of one block of dtype_bytes(dtype) bytes. `dtype` is one of
/// ggml's.
void decode_ggml_block(Dtype dtype, const std::byte* block, float* values);

/// Whether its elements lie in blocks.
inline bool is_ggml_block(Dtype dtype) { return dtype_block(dtype) > 1; }

}  // namespace oxbow
