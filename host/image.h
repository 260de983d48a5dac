#pragma once

// Pictures from files: PNG by libpng, JPEG by libjpeg, where the build has found them, and PNM. Nothing in a file is
// believed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oxbow {

/// Pixels row after row, 1 byte for grey or 3 for red, green, blue.
struct Image {
  uint32_t width = 0, height = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

bool looks_like_image(std::span<const std::byte> file);

/// `path` is for messages. Throws InputError.
Image read_image(const std::string& path, std::span<const std::byte> file);

/// In `channels`, 1 or 3: grey as ITU-R 601 weighs colours.
Image with_channels(const Image& image, uint32_t channels);

/// Scaled to a size by triangles as wide as the larger of both steps (bilinear, with anti-aliasing when it shrinks),
/// across and then down, each rounded to a byte.
Image resized(const Image& image, uint32_t width, uint32_t height);

/// The planes one after the other, each value / 255 less its mean, divided by its deviation. Of means and deviations
/// there is one for each channel, or one for all.
std::vector<float> planes_of(const Image& image, const std::vector<double>& means,
                             const std::vector<double>& deviations);

}  // namespace oxbow
