// The formula of docs/npu.md: examples worked out by hand, and layers against a plain one.

#include "ops/linear/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/base/weight_blocks.h"

namespace oxbow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Formula, CodesAreTheNearestAndHalvesGoToTheEvenOne) {
  const std::pair<float, int> cases[] = {
      {0.5f, 0},        {1.5f, 2},          {2.5f, 2},    {-0.5f, 0},
      {-1.5f, -2},      {-2.5f, -2},        {2.4999f, 2}, {126.5f, 126},
      {127.5f, 127},    {-127.5f, -128},    {1e30f, 127}, {-1e30f, -128},
      {kInfinity, 127}, {-kInfinity, -128}, {NAN, 0},     {-128.4f, -128}};
  for (const auto& [value, code] : cases) EXPECT_EQ(formula_code(value), code) << value;
}

TEST(Formula, AChannelOfZerosGivesItsBiasInStepsOfTheResult) {
  EXPECT_EQ(formula_factor(0.25f, 0.0f, 0.5f), 1.0f);
  EXPECT_EQ(formula_bias(3.0f, 0.25f, 0.0f, 0.5f, 8), 6);
  EXPECT_EQ(formula_factor(0.25f, 0.5f, 0.5f), 0.25f);
  EXPECT_EQ(formula_bias(3.0f, 0.25f, 0.5f, 0.5f, 8), 24);
}

TEST(Formula, SumsWithTheLargestBiasStayInsideInt32) {
  for (const uint32_t depth : {1u, 512u, 131000u}) {
    for (const float bias : {1e30f, -1e30f, kInfinity, -kInfinity, NAN}) {
      const int64_t code = formula_bias(bias, 0.5f, 0.5f, 1.0f, depth);
      const int64_t sums = int64_t{128} * 128 * depth;
      EXPECT_LE(code + sums, INT32_MAX) << depth << " " << bias;
      EXPECT_GE(code - sums, INT32_MIN) << depth << " " << bias;
    }
  }
}

TEST(Formula, ATableHoldsTheActivationOfEveryCode) {
  int8_t table[kFormulaTable];
  formula_table({Activation::kGelu, 0}, 0.05f, 0.03f, table);
  for (int code = -128; code < 128; ++code) {
    const double x = code * 0.05;
    const double y = x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))) / 0.03;
    EXPECT_NEAR(table[code + 128], std::min(y, 127.0), 0.501) << code;
  }
  EXPECT_EQ(table[128], 0);
  EXPECT_EQ(table[255], 127);
}

/// A layer of random numbers, its weights also row after row.
struct Case {
  FormulaLayer layer;
  std::vector<int8_t> blocks, rows;
  std::vector<float> scales, bias;
};

Case make_case(size_t depth, size_t channels, bool has_bias, Activation activation, float y_scale) {
  std::mt19937 random(7);
  Case made;
  const size_t columns = round_up(depth, kBlockColumns);
  made.blocks.resize(round_up(channels, kBlockRows) * columns, 99);
  for (size_t n = 0; n < channels; ++n) {
    for (size_t k = 0; k < depth; ++k) {
      const auto code = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
      made.rows.push_back(code);
      made.blocks[n / kBlockRows * kBlockRows * columns +
                  k / kBlockColumns * kBlockRows * kBlockColumns + n % kBlockRows * kBlockColumns +
                  k % kBlockColumns] = code;
    }
    made.scales.push_back(n == 3 ? 0.0f : 0.001f * static_cast<float>(1 + n % 7));
    made.bias.push_back(static_cast<float>(n % 11) - 5);
  }
  FormulaLayer& layer = made.layer;
  layer.depth = depth;
  layer.channels = channels;
  layer.weight = made.blocks.data();
  layer.weight_scales = made.scales.data();
  layer.bias = has_bias ? made.bias.data() : nullptr;
  layer.x_scale = 0.02f;
  layer.output_scale = 0.07f;
  layer.y_scale = y_scale;
  layer.activation = {activation, 0};
  return made;
}

TEST(Formula, ALayerIsSumsFactorsAndATable) {
  for (const auto activation : {Activation::kNone, Activation::kRelu, Activation::kGeluTanh}) {
    for (const float y_scale : {0.0f, 0.03f}) {
      for (const bool has_bias : {false, true}) {
        Case made = make_case(37, 21, has_bias, activation, y_scale);
        const FormulaLayer& layer = made.layer;
        std::mt19937 random(3);
        std::vector<int8_t> x(5 * layer.depth), y(5 * layer.channels);
        for (int8_t& code : x) code = static_cast<int8_t>(random());
        formula_layer(layer, x.data(), 5, y.data());
        const bool direct = y_scale != 0 && activation != Activation::kGeluTanh;
        const float sum_scale = direct ? y_scale : layer.output_scale;
        int8_t table[kFormulaTable];
        formula_table(layer.activation, layer.output_scale, 0.03f, table);
        for (size_t r = 0; r < 5; ++r) {
          for (size_t n = 0; n < layer.channels; ++n) {
            const bool is_zero = made.scales[n] == 0.0f;
            int32_t sum = 0;
            for (size_t k = 0; k < layer.depth && !is_zero; ++k) {
              sum += x[r * layer.depth + k] * made.rows[n * layer.depth + k];
            }
            const float scale = is_zero ? sum_scale : 0.02f * made.scales[n];
            if (has_bias) sum += static_cast<int32_t>(std::nearbyint(double{made.bias[n]} / scale));
            const float factor = is_zero ? 1.0f : scale / sum_scale;
            auto code = static_cast<int>(
                std::nearbyint(std::clamp(static_cast<float>(sum) * factor, -128.0f, 127.0f)));
            if (direct && activation == Activation::kRelu) code = std::max(code, 0);
            if (y_scale != 0 && !direct) code = table[code + 128];
            ASSERT_EQ(y[r * layer.channels + n], code) << r << " " << n;
          }
        }
      }
    }
  }
}

TEST(Formula, FactorsAreMultipliersExactly) {
  EXPECT_EQ(formula_scale(1.0f).multiplier, 1 << 30);
  EXPECT_EQ(formula_scale(1.0f).shift, 30);
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    const float factor = std::ldexp(1.0f + static_cast<float>(random() % (1 << 23)) * 0x1p-23f,
                                    static_cast<int>(random() % 60) - 32);
    const FormulaScale scale = formula_scale(factor);
    EXPECT_GE(scale.shift, 2);
    EXPECT_LE(scale.shift, 62);
    EXPECT_EQ(std::ldexp(static_cast<double>(scale.multiplier), -scale.shift), factor);
  }
}

TEST(Formula, CodesInIntegersAreTheNearestAndHalvesGoUp) {
  const FormulaScale half = formula_scale(0.5f);
  const std::pair<int32_t, int> cases[] = {
      {1, 1},     {3, 2},     {5, 3},     {-1, 0},      {-3, -1},     {-5, -2},
      {252, 126}, {253, 127}, {255, 127}, {-256, -128}, {-900, -128}, {INT32_MAX, 127}};
  for (const auto& [sum, code] : cases) EXPECT_EQ(formula_code(sum, half), code) << sum;
  // What no sum makes half a code of is 0, and what every sum makes too large is the limit.
  for (const float factor : {0.0f, -1.0f, NAN, 0x1p-33f, 1e-30f}) {
    EXPECT_EQ(formula_code(INT32_MAX, formula_scale(factor)), 0) << factor;
    EXPECT_EQ(formula_code(INT32_MIN, formula_scale(factor)), 0) << factor;
  }
  for (const float factor : {0x1p29f, 1e30f, kInfinity}) {
    EXPECT_EQ(formula_code(1, formula_scale(factor)), 127) << factor;
    EXPECT_EQ(formula_code(-1, formula_scale(factor)), -128) << factor;
    EXPECT_EQ(formula_code(0, formula_scale(factor)), 0) << factor;
    EXPECT_EQ(formula_code(INT32_MIN, formula_scale(factor)), -128) << factor;
  }
}

TEST(Formula, ALayerInIntegersRoundsTheExactProduct) {
  for (const auto activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
    for (const float y_scale : {0.0f, 0.03f}) {
      Case made = make_case(37, 21, true, activation, y_scale);
      FormulaLayer& layer = made.layer;
      layer.rounding = FormulaRounding::kInteger;
      std::mt19937 random(3);
      std::vector<int8_t> x(5 * layer.depth), y(5 * layer.channels);
      for (int8_t& code : x) code = static_cast<int8_t>(random());
      formula_layer(layer, x.data(), 5, y.data());
      int8_t table[kFormulaTable];
      formula_table(layer.activation, layer.output_scale, 0.03f, table);
      for (size_t r = 0; r < 5; ++r) {
        for (size_t n = 0; n < layer.channels; ++n) {
          const bool is_zero = made.scales[n] == 0.0f;
          int64_t sum = formula_bias(made.bias[n], 0.02f, made.scales[n], layer.sum_scale(), 37);
          for (size_t k = 0; k < layer.depth && !is_zero; ++k) {
            sum += x[r * layer.depth + k] * made.rows[n * layer.depth + k];
          }
          // Sums of so few products times 24 bits are exact in a double.
          const double factor = formula_factor(0.02f, made.scales[n], layer.sum_scale());
          int code = static_cast<int>(
              std::clamp(std::floor(static_cast<double>(sum) * factor + 0.5), -128.0, 127.0));
          code = std::max(code, layer.least());
          if (layer.has_table()) code = table[code + 128];
          ASSERT_EQ(y[r * layer.channels + n], code) << r << " " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace oxbow
