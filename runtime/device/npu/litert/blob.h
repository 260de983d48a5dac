#pragma once

// What a layer for LiteRT is in a file: its commands are this header, its weights a .tflite file, which may also have been
// compiled for a chip by LiteRT's own tools.

#include <cstddef>
#include <cstdint>

namespace oxbow {

inline constexpr uint32_t kLitertMagic = 0x314c584f;  // "OXL1"
/// FlatBuffers count in 31 bits.
inline constexpr size_t kMostLitertBytes = 0x7fffffff;

struct LitertHeader {
  uint32_t magic;
  uint32_t depth;
  uint32_t channels;
  uint32_t rows;
};

}  // namespace oxbow
