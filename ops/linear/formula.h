#pragma once

// What accelerators that give int8 codes are compared with: docs/npu.md states it. Both converter and runtime write tables and
// factors by it, so that a compiled chain and its referee have the same.

#include <cstddef>
#include <cstdint>

#include "ops/activate/activate.h"

namespace oxbow {

inline constexpr int32_t kFormulaMin = -128, kFormulaMax = 127;
inline constexpr size_t kFormulaTable = 256;

/// How sums become codes: in float32, halves to the even code, or in integers, halves upwards.
enum class FormulaRounding { kFloat, kInteger };

/// To the nearest code, halves to the even one; NaN gives 0.
int8_t formula_code(float value);

/// A factor as accelerators without floats have it: multiplier / 2^shift, exactly, where a product with an int32 can be other
/// than 0 or too large for a code.
struct FormulaScale {
  /// 0 or more.
  int32_t multiplier = 0;
  /// 2 to 62.
  int32_t shift = 0;
};
FormulaScale formula_scale(float factor);

/// The nearest code to sum * multiplier / 2^shift, halves to the larger one.
int8_t formula_code(int32_t sum, const FormulaScale& scale);

/// Of a channel: what its sums are multiplied with. A channel whose weights have the scale 0 is one of zeros; its factor is 1.
float formula_factor(float x_scale, float weight_scale, float y_scale);

/// A bias counted in products of codes, small enough that the sum stays inside int32.
int32_t formula_bias(float bias, float x_scale, float weight_scale, float y_scale, size_t depth);

/// Codes after the activation, by the code before it plus 128.
void formula_table(const ActivateParams& activation, float before_scale, float after_scale,
                   int8_t* table);

/// A dense layer with static rows.
struct FormulaLayer {
  size_t depth = 0, channels = 0;
  /// As the file has it: [ceil(channels/8)][ceil(depth/4)][8][4].
  const int8_t* weight = nullptr;
  const float* weight_scales = nullptr;
  /// Or null.
  const float* bias = nullptr;
  float x_scale = 0;
  /// Of x W^T + bias.
  float output_scale = 0;
  /// Of what follows the activation; 0: it does not follow, codes are those of x W^T + bias.
  float y_scale = 0;
  ActivateParams activation;
  FormulaRounding rounding = FormulaRounding::kFloat;

  /// Nothing is rounded between the sums and the codes after the activation.
  bool is_direct() const {
    return y_scale != 0.0f && (activation.activation == Activation::kNone ||
                               activation.activation == Activation::kRelu);
  }
  /// Codes pass through formula_table.
  bool has_table() const { return y_scale != 0.0f && !is_direct(); }
  /// Of the codes that the sums are rounded to.
  float sum_scale() const { return is_direct() ? y_scale : output_scale; }
  int32_t least() const {
    return is_direct() && activation.activation == Activation::kRelu ? 0 : kFormulaMin;
  }
};

/// x [rows][depth], y [rows][channels].
void formula_layer(const FormulaLayer& layer, const int8_t* x, size_t rows, int8_t* y);

}  // namespace oxbow
