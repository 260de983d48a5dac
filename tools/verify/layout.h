#pragma once

// Where the rows of one stream lie inside a reference tensor, which holds all streams.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oxbow::tools {

/// Where the value of this index lies; nowhere in a tensor without values, such as an empty memory.
std::vector<uint64_t> coordinates(const std::vector<uint64_t>& shape, uint64_t index);

struct Layout {
  /// [time, batch, ...] and not [batch, time, ...].
  bool time_major = false;
  uint64_t batch = 1;
  /// False: the tensors have no batch dimension at all.
  bool has_batch = true;

  /// How the rows of one stream are found: row r of stream s starts at
  /// s * stream_stride + r * row_stride.
  struct View {
    uint64_t rows = 0, width = 0;
    uint64_t stream_stride = 0, row_stride = 0;

    uint64_t at(uint64_t stream, uint64_t row) const {
      return stream * stream_stride + row * row_stride;
    }
  };

  /// Nothing when the shape does not hold `batch` streams.
  std::optional<View> view(const std::vector<uint64_t>& shape) const;
  /// The same for a tensor without a time dimension, all of which is `rows` rows of a stream, or of every
  /// stream when it has no dimension for them; nothing when there are more or fewer values.
  std::optional<View> whole(const std::vector<uint64_t>& shape, uint64_t rows,
                            uint64_t width) const;
};

}  // namespace oxbow::tools
