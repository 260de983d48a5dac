#pragma once

// The fixed bytes at the start of an .oxb file, read before anything else is believed.
//
//   0   u32  FlatBuffers root offset   }  so that the file is a valid FlatBuffer with trailing data
//   4   "OXB1"                         }
//   8   u32  format version
//   12  u32  prefix bytes (64)
//   16  u64  graph bytes: the FlatBuffer, this prefix included
//   24  u64  data offset, a multiple of 16 KiB, from the start of the file
//   32  u64  data bytes: the weights; the file ends behind them
//   40  u64  hash of the graph behind the prefix
//   48  u64  hash of the data
//   56  u64  hash of bytes 0..56
//
// All little endian. The writer makes room by inserting bytes 8..64 into the finished FlatBuffer and
// adding 56 to the root offset; every other FlatBuffers offset is relative and does not care.

#include <cstddef>
#include <cstdint>

namespace oxbow {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kSegmentAlignment = 16384;

struct FilePrefix {
  uint32_t root_offset;
  char identifier[4];
  uint32_t version;
  uint32_t prefix_bytes;
  uint64_t graph_bytes;
  uint64_t data_offset;
  uint64_t data_bytes;
  uint64_t graph_hash;
  uint64_t data_hash;
  uint64_t prefix_hash;
};
static_assert(sizeof(FilePrefix) == 64);

}  // namespace oxbow
