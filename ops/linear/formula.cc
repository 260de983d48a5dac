#include "ops/linear/formula.h"

#include <cmath>

#include "runtime/base/checked.h"
#include "runtime/base/weight_blocks.h"

namespace oxbow {

int8_t formula_code(float value) {
  float v = value > float{kFormulaMax} ? float{kFormulaMax} : value;
  v = v < float{kFormulaMin} ? float{kFormulaMin} : v;
  return v == v ? static_cast<int8_t>(std::nearbyint(v)) : int8_t{0};
}

FormulaScale formula_scale(float factor) {
  constexpr int kBits = 31, kLeastShift = 2, kMostShift = 62;
  // Products with any sum round to 0, or are beyond all codes.
  const float smallest = std::ldexp(1.0f, kBits - 1 - kMostShift);
  const float largest = std::ldexp(1.0f, kBits - kLeastShift);
  if (!(factor >= smallest)) return {0, kMostShift};
  if (factor >= largest) return {INT32_MAX, kLeastShift};
  int exponent = 0;
  const float fraction = std::frexp(factor, &exponent);
  return {static_cast<int32_t>(std::ldexp(fraction, kBits)), kBits - exponent};
}

int8_t formula_code(int32_t sum, const FormulaScale& scale) {
  const int64_t half = int64_t{1} << (scale.shift - 1);
  const int64_t code = (int64_t{sum} * scale.multiplier + half) >> scale.shift;
  return static_cast<int8_t>(code > kFormulaMax   ? kFormulaMax
                             : code < kFormulaMin ? kFormulaMin
                                                  : code);
}

float formula_factor(float x_scale, float weight_scale, float y_scale) {
  return weight_scale == 0.0f ? 1.0f : x_scale * weight_scale / y_scale;
}

int32_t formula_bias(float bias, float x_scale, float weight_scale, float y_scale, size_t depth) {
  const float scale = weight_scale == 0.0f ? y_scale : x_scale * weight_scale;
  const double limit = 2147483647.0 - 128.0 * 128.0 * static_cast<double>(depth);
  const double code = std::nearbyint(static_cast<double>(bias) / static_cast<double>(scale));
  return static_cast<int32_t>(code > limit ? limit : code > -limit ? code : -limit);
}

void formula_table(const ActivateParams& activation, float before_scale, float after_scale,
                   int8_t* table) {
  float values[kFormulaTable];
  for (int32_t code = kFormulaMin; code <= kFormulaMax; ++code) {
    values[code - kFormulaMin] = static_cast<float>(code) * before_scale;
  }
  pick_activate_kernel(true)(activation, values, kFormulaTable, values);
  const float inverse = 1.0f / after_scale;
  for (size_t i = 0; i < kFormulaTable; ++i) table[i] = formula_code(values[i] * inverse);
}

void formula_layer(const FormulaLayer& layer, const int8_t* x, size_t rows, int8_t* y) {
  const size_t columns = round_up(layer.depth, kBlockColumns);
  const float y_scale = layer.sum_scale();
  int8_t table[kFormulaTable];
  if (layer.has_table()) {
    formula_table(layer.activation, layer.output_scale, layer.y_scale, table);
  }
  for (size_t n = 0; n < layer.channels; ++n) {
    const int8_t* blocks =
        layer.weight + n / kBlockRows * kBlockRows * columns + n % kBlockRows * kBlockColumns;
    const float scale = layer.weight_scales[n];
    const float factor = formula_factor(layer.x_scale, scale, y_scale);
    const FormulaScale exact = formula_scale(factor);
    const int32_t bias = layer.bias == nullptr ? 0
                                               : formula_bias(layer.bias[n], layer.x_scale, scale,
                                                              y_scale, layer.depth);
    for (size_t r = 0; r < rows; ++r) {
      const int8_t* row = x + r * layer.depth;
      int32_t sum = bias;
      for (size_t k = 0; k < layer.depth && scale != 0.0f; ++k) {
        sum += row[k] * blocks[k / kBlockColumns * kBlockRows * kBlockColumns + k % kBlockColumns];
      }
      int32_t code = layer.rounding == FormulaRounding::kInteger
                         ? formula_code(sum, exact)
                         : formula_code(static_cast<float>(sum) * factor);
      code = code < layer.least() ? layer.least() : code;
      y[r * layer.channels + n] =
          layer.has_table() ? table[code - kFormulaMin] : static_cast<int8_t>(code);
    }
  }
}

}  // namespace oxbow
