#pragma once

// Images as the input of a model: the planes of their channels as rows, cut into patches, with a row for the class in
// front.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct ImageGrid {
  uint32_t channels = 0, height = 0, width = 0;
  uint32_t patch_height = 0, patch_width = 0;

  /// Patches that are not whole are left out.
  uint32_t down() const { return height / patch_height; }
  uint32_t across() const { return width / patch_width; }
  uint32_t patches() const { return down() * across(); }
  /// Elements of a patch.
  uint32_t patch_size() const { return channels * patch_height * patch_width; }
};

/// From the keys image_size and patch_size, each a number or height and width, and `channels_key`.
ImageGrid read_image_grid(const Checkpoint& checkpoint, uint32_t image_size, uint32_t patch_size,
                          const std::string& channels_key);

/// Begins the only entry point, whose input is an image: a row for each channel, pixels row after row. Gives the
/// patches, elements in the order channel, row, column.
uint32_t begin_image(GraphBuilder& builder, const std::string& input, const ImageGrid& grid);

/// The row `first` [1, 1, width] and then x, plus positions [1, rows, width], both by their names.
uint32_t add_class_and_positions(const Checkpoint& checkpoint, GraphBuilder& builder, uint32_t x,
                                 const std::string& first, const std::string& positions,
                                 uint32_t rows, uint32_t width);

}  // namespace oxbow::convert
