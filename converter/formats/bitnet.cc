#include "converter/formats/bitnet.h"

#include <algorithm>
#include <cmath>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr uint64_t kRowsOfByte = 4;

}  // namespace

bool BitnetFormat::is_matrix(const std::string& name) const {
  if (!name.ends_with("_proj.weight")) return false;
  return std::none_of(float_modules.begin(), float_modules.end(), [&](const std::string& module) {
    return name.find(module) != std::string::npos;
  });
}

std::vector<float> unpack_bitnet(const std::string& where, const StoredTensor& tensor,
                                 uint64_t rows, uint64_t width) {
  const uint64_t quarter = rows / kRowsOfByte;
  if (tensor.dtype != Dtype::kU8 || rows % kRowsOfByte != 0 ||
      tensor.shape != std::vector<uint64_t>{quarter, width}) {
    throw InputError(where + " is " + tensor.describe() + ", expected U8[" +
                     std::to_string(quarter) + ", " + std::to_string(width) +
                     "]: four rows of codes in a byte");
  }
  const std::vector<int64_t> bytes = to_integers(tensor);
  std::vector<float> codes(rows * width);
  for (uint64_t i = 0; i < codes.size(); ++i) {
    const uint64_t row = i / width;
    const int64_t byte = bytes[row % quarter * width + i % width];
    const int64_t stored = byte >> (2 * (row / quarter)) & 3;
    if (stored == 3) {
      throw InputError(where + " has the bits 3 at row " + std::to_string(row) + ", column " +
                       std::to_string(i % width) + ", expected 0 to 2, for -1 to 1");
    }
    codes[i] = static_cast<float>(stored - 1);
  }
  return codes;
}

float ternary_step(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::fabs(value);
  return std::max(static_cast<float>(sum / static_cast<double>(values.size())), 1e-5f);
}

int ternary_code(float value, float step) {
  if (step == 0) return 0;
  return static_cast<int>(std::nearbyint(std::clamp(value / step, -1.0f, 1.0f)));
}

void round_like_bitnet(std::vector<float>& values) {
  const float step = ternary_step(values);
  for (float& value : values) value = step * static_cast<float>(ternary_code(value, step));
}

}  // namespace oxbow::convert
