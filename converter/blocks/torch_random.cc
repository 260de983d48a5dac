#include "converter/blocks/torch_random.h"

#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

namespace oxbow::convert {
namespace {

constexpr size_t kGroup = 16;

/// 24 bits of each draw.
void fill_uniforms(std::mt19937& generator, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(generator() & 0xffffffu) * 0x1p-24f;
  }
}

/// Box and Muller: the first half of a group has the radii, the second the angles.
void to_normals(float* group) {
  constexpr size_t kHalf = kGroup / 2;
  for (size_t i = 0; i < kHalf; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(static_cast<double>(1.0f - group[i])));
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(group[i + kHalf]);
    group[i] = static_cast<float>(radius * std::cos(angle));
    group[i + kHalf] = static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace

std::vector<float> torch_normals(uint64_t seed, size_t count) {
  if (count < kGroup)
    throw std::logic_error("fewer than 16 random numbers are drawn in another way");
  std::mt19937 generator(static_cast<uint32_t>(seed));
  std::vector<float> values(count);
  fill_uniforms(generator, values.data(), count);
  for (size_t i = 0; i + kGroup <= count; i += kGroup) to_normals(values.data() + i);
  if (count % kGroup != 0) {
    // The last group is drawn once more, over the end of the one before it.
    float* last = values.data() + count - kGroup;
    fill_uniforms(generator, last, kGroup);
    to_normals(last);
  }
  return values;
}

}  // namespace oxbow::convert
