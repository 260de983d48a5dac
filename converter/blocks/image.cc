#include "converter/blocks/image.h"

#include "converter/formats/limits.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

// Of an image: its pixels must be the elements of a row.
constexpr uint32_t kMaxSide = 1u << 14;

std::vector<uint32_t> read_sides(const Checkpoint& checkpoint, const std::string& key,
                                 uint32_t fallback) {
  if (!checkpoint.has_value(key)) return {fallback, fallback};
  return checkpoint.size_for_each(key, 1, kMaxSide, 2);
}

}  // namespace

ImageGrid read_image_grid(const Checkpoint& checkpoint, uint32_t image_size, uint32_t patch_size,
                          const std::string& channels_key) {
  const std::vector<uint32_t> image = read_sides(checkpoint, "image_size", image_size);
  const std::vector<uint32_t> patch = read_sides(checkpoint, "patch_size", patch_size);
  const ImageGrid grid = {checkpoint.size(channels_key, 1, 4096, 3), image[0], image[1], patch[0],
                          patch[1]};
  if (grid.patch_height > grid.height || grid.patch_width > grid.width) {
    checkpoint.refuse("patch_size is " + std::to_string(grid.patch_height) + " by " +
                      std::to_string(grid.patch_width) + ", expected no more than image_size, " +
                      std::to_string(grid.height) + " by " + std::to_string(grid.width));
    return {grid.channels, 1, 1, 1, 1};
  }
  if (uint64_t{grid.channels} * grid.patch_height * grid.patch_width > kMaxSize ||
      uint64_t{grid.down()} * grid.across() > kMaxSize) {
    checkpoint.refuse("image_size and patch_size: expected at most " + std::to_string(kMaxSize) +
                      " patches of as many numbers");
    return {1, 1, 1, 1, 1};
  }
  return grid;
}

uint32_t begin_image(GraphBuilder& builder, const std::string& input, const ImageGrid& grid) {
  GraphBuilder::Entry entry;
  entry.name = "encode";
  entry.tokens = input;
  entry.float_width = grid.height * grid.width;
  entry.max_segment = grid.channels;
  entry.starts = true;
  builder.begin_entry(entry);
  schema::PatchesOptionsT options;
  options.channels = grid.channels;
  options.height = grid.height;
  options.width = grid.width;
  options.patch_height = options.stride_y = grid.patch_height;
  options.patch_width = options.stride_x = grid.patch_width;
  options.planar = true;
  return builder.patches("patches", builder.tokens(), options);
}

uint32_t add_class_and_positions(const Checkpoint& checkpoint, GraphBuilder& builder, uint32_t x,
                                 const std::string& first, const std::string& positions,
                                 uint32_t rows, uint32_t width) {
  const uint32_t token = builder.weight(first, 1, width, checkpoint.tensor(first, {1, 1, width}));
  const uint32_t places =
      builder.weight(positions, rows, width, checkpoint.tensor(positions, {1, rows, width}));
  return builder.add("embedded", builder.concat_rows("tokens", {token, x}), places);
}

}  // namespace oxbow::convert
