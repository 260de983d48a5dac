#include "converter/blocks/torch_random.h"

#include <cmath>
#include <numbers>
#include <random>

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

/// 53 bits of two draws.
double uniform(std::mt19937& generator) {
  const uint64_t high = generator();
  const uint64_t bits = high << 32 | generator();
  return static_cast<double>(bits & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

/// Fewer than a group are drawn in pairs, in double.
std::vector<float> few_normals(std::mt19937& generator, size_t count) {
  std::vector<float> values;
  while (values.size() < count) {
    const double angle = 2.0 * std::numbers::pi * uniform(generator);
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform(generator)));
    values.push_back(static_cast<float>(radius * std::cos(angle)));
    values.push_back(static_cast<float>(radius * std::sin(angle)));
  }
  values.resize(count);
  return values;
}

}  // namespace

std::vector<float> torch_normals(uint64_t seed, size_t count) {
  std::mt19937 generator(static_cast<uint32_t>(seed));
  if (count < kGroup) return few_normals(generator, count);
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
