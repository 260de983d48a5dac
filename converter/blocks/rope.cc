#include "converter/blocks/rope.h"

#include <cmath>

#include "converter/formats/checkpoint.h"

namespace oxbow::convert {

std::vector<float> rope_frequencies(double theta, uint32_t width) {
  std::vector<float> out;
  for (uint32_t i = 0; i < width / 2; ++i) {
    out.push_back(static_cast<float>(std::pow(theta, -2.0 * i / width)));
  }
  return out;
}

std::vector<float> partial_rope_frequencies(const Checkpoint& checkpoint, double theta,
                                            uint32_t head_width, double part,
                                            const std::string& key) {
  const auto width = static_cast<uint32_t>(head_width * part);
  if (width == 0 || width % 2 != 0) {
    checkpoint.refuse(
        part == 1 ? "a head has " + std::to_string(width) +
                        " elements, expected an even number: rotary positions turn pairs"
                  : key + " turns " + std::to_string(width) + " of " + std::to_string(head_width) +
                        " elements of each head, expected an even number, and at least 2");
  }
  return rope_frequencies(theta, width);
}

}  // namespace oxbow::convert
