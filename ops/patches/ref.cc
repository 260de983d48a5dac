#include <algorithm>

#include "ops/patches/patches.h"

namespace oxbow {
namespace {

/// Which of `count` places from `first` on, counted with the padding, are inside of `size`: [begin, end).
struct Inside {
  size_t begin, end;
  Inside(size_t first, size_t count, size_t pad, size_t size)
      : begin(first < pad ? std::min(pad - first, count) : 0),
        end(std::min(count, size + pad > first ? size + pad - first : 0)) {
    end = std::max(begin, end);
  }
};

}  // namespace

void patches_f32_f32_ref(const float* x, const PatchGrid& grid, size_t patch, float* y) {
  const size_t top = patch / grid.across() * grid.stride_y;
  const size_t left = patch % grid.across() * grid.stride_x;
  const Inside rows(top, grid.patch_height, grid.pad_y, grid.height);
  const Inside columns(left, grid.patch_width, grid.pad_x, grid.width);
  // Pixels have all channels side by side, planes one.
  const size_t planes = grid.planar ? grid.channels : 1;
  const size_t values = grid.planar ? 1 : grid.channels;
  for (size_t plane = 0; plane < planes; ++plane) {
    for (size_t row = 0; row < grid.patch_height; ++row) {
      std::fill(y, y + grid.patch_width * values, 0.0f);
      if (row >= rows.begin && row < rows.end && columns.begin < columns.end) {
        const size_t pixel =
            (top + row - grid.pad_y) * grid.width + (left + columns.begin - grid.pad_x);
        const float* from = x + (plane * grid.height * grid.width + pixel) * values;
        std::copy(from, from + (columns.end - columns.begin) * values, y + columns.begin * values);
      }
      y += grid.patch_width * values;
    }
  }
}

}  // namespace oxbow
