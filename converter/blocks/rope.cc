#include "converter/blocks/rope.h"

#include <cmath>

namespace oxbow::convert {

std::vector<float> rope_frequencies(double theta, uint32_t width) {
  std::vector<float> out;
  for (uint32_t i = 0; i < width / 2; ++i) {
    out.push_back(static_cast<float>(std::pow(theta, -2.0 * i / width)));
  }
  return out;
}

}  // namespace oxbow::convert
