#include "converter/passes/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "converter/passes/passes.h"
#include "converter/passes/transform.h"
#include "converter/testing/pack_all.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

constexpr float kMost = 127;

/// Rows whose columns go together: a few directions, and a little of everything.
std::vector<float> related_rows(size_t rows, size_t width, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  constexpr size_t kDirections = 6;
  std::vector<float> directions(kDirections * width), out(rows * width);
  std::mt19937 fixed(77);
  for (float& value : directions) value = normal(fixed);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t d = 0; d < kDirections; ++d) {
      const float size = normal(random);
      for (size_t i = 0; i < width; ++i) out[row * width + i] += size * directions[d * width + i];
    }
    for (size_t i = 0; i < width; ++i) out[row * width + i] += 0.3f * normal(random);
  }
  return out;
}

Weight random_matrix(uint32_t rows, uint32_t width) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> values(size_t{rows} * width);
  for (float& value : values) value = normal(random);
  return Weight(rows, width, values);
}

MatrixInputs inputs_of(size_t rows, uint32_t width) {
  MatrixInputs inputs;
  inputs.of["w"] = {"x"};
  // In two pieces, as runs make them.
  for (const uint32_t seed : {1u, 2u}) {
    inputs.rows["x"].emplace_back(static_cast<uint32_t>(rows / 2), width,
                                  related_rows(rows / 2, width, seed));
  }
  return inputs;
}

float scale_of_row(std::span<const float> row) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  return largest / kMost;
}

/// What a matrix has, times one scale a row.
std::vector<float> fitted(const Fit& fit, const Weight& matrix, float most) {
  const std::vector<float> values = matrix.values();
  const size_t width = matrix.width();
  const auto scale = [&](size_t row) {
    return scale_of_row(std::span(values).subspan(row * width, width)) * kMost / most;
  };
  std::vector<float> codes = values;
  fit.round(codes, -most, most,
            [&](size_t row, size_t, std::span<const float>) { return Fit::Scale{scale(row)}; });
  for (size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(codes[i], std::nearbyint(codes[i]));
    EXPECT_LE(std::fabs(codes[i]), most);
    codes[i] *= scale(i / width);
  }
  return codes;
}

std::vector<float> nearest(const Weight& matrix, float most) {
  std::vector<float> values = matrix.values();
  const size_t width = matrix.width();
  for (size_t row = 0; row < matrix.rows(); ++row) {
    const std::span<float> one = std::span(values).subspan(row * width, width);
    const float scale = scale_of_row(one) * kMost / most;
    for (float& value : one) value = std::nearbyint(value / scale) * scale;
  }
  return values;
}

/// Mean square of what the products with some rows differ.
double loss(const Weight& matrix, const std::vector<float>& rounded,
            const std::vector<float>& rows) {
  const std::vector<float> values = matrix.values();
  const size_t width = matrix.width();
  double sum = 0;
  for (size_t x = 0; x < rows.size(); x += width) {
    for (size_t w = 0; w < values.size(); w += width) {
      double product = 0;
      for (size_t i = 0; i < width; ++i)
        product += double{rows[x + i]} * (rounded[w + i] - values[w + i]);
      sum += product * product;
    }
  }
  return sum;
}

TEST(Fit, ProductsWithOtherRowsOfTheSameKindLoseLess) {
  for (const uint32_t width : {20u, 64u, 97u}) {
    const Weight matrix = random_matrix(33, width);
    const MatrixInputs inputs = inputs_of(512, width);
    const Fit fit(inputs, inputs.of.at("w"), matrix);
    const std::vector<float> others = related_rows(200, width, 9);
    for (const float most : {127.0f, 7.0f}) {
      EXPECT_LT(loss(matrix, fitted(fit, matrix, most), others),
                0.5 * loss(matrix, nearest(matrix, most), others))
          << width << " columns, codes up to " << most;
    }
  }
}

TEST(Fit, RowsThatDoBetterAloneAreTold) {
  // So few rows say nothing of others: what makes up for it there is lost elsewhere.
  constexpr uint32_t kWidth = 97;
  const Weight matrix = random_matrix(33, kWidth);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> rows(48 * kWidth), others(200 * kWidth);
  for (float& value : rows) value = normal(random);
  for (float& value : others) value = normal(random);
  MatrixInputs inputs;
  inputs.of["w"] = {"x"};
  inputs.rows["x"] = {Weight(48, kWidth, rows)};
  const std::vector<float> values = matrix.values();
  const std::vector<float> alone = nearest(matrix, kMost);
  const Fit fit(inputs, {"x"}, matrix);
  const std::vector<float> together = fitted(fit, matrix, kMost);
  ASSERT_GT(loss(matrix, together, others), 1.05 * loss(matrix, alone, others));
  std::vector<float> chosen = together;
  size_t left = 0;
  for (size_t at = 0; at < values.size(); at += kWidth) {
    std::vector<float> a(kWidth), b(kWidth);
    for (size_t i = 0; i < kWidth; ++i) {
      a[i] = alone[at + i] - values[at + i];
      b[i] = together[at + i] - values[at + i];
    }
    if (!fit.is_better(a, b)) continue;
    ++left;
    std::copy_n(&alone[at], kWidth, &chosen[at]);
  }
  EXPECT_GT(left, 8u);
  EXPECT_LT(left, 33u) << "three rows cannot tell for sure";
  EXPECT_LT(loss(matrix, chosen, others), loss(matrix, together, others));
}

TEST(Fit, WhereNothingWasSeenEveryWeightIsRoundedByItself) {
  const Weight matrix = random_matrix(20, 70);
  MatrixInputs inputs;
  const std::vector<float> broken(3 * 70, NAN);
  inputs.rows["x"] = {Weight(4, 70, std::vector<float>(4 * 70)), Weight(3, 70, broken)};
  EXPECT_EQ(fitted(Fit(inputs, {"x"}, matrix), matrix, kMost), nearest(matrix, kMost));
}

TEST(Fit, WideRowsAreFittedInPieces) {
  constexpr uint32_t kWidth = 2100;
  const Weight matrix = random_matrix(3, kWidth);
  const MatrixInputs inputs = inputs_of(64, kWidth);
  const Fit fit(inputs, {"x"}, matrix);
  const std::vector<float> others = related_rows(20, kWidth, 9);
  EXPECT_LT(loss(matrix, fitted(fit, matrix, kMost), others),
            0.7 * loss(matrix, nearest(matrix, kMost), others));
}

TEST(Fit, ARowOfZerosStaysOne) {
  const Weight matrix(2, 40, std::vector<float>(80));
  const MatrixInputs inputs = inputs_of(64, 40);
  EXPECT_EQ(fitted(Fit(inputs, {"x"}, matrix), matrix, kMost), std::vector<float>(80));
}

TEST(Fit, KnowsWhatWasDoneToTheColumns) {
  Weight matrix = random_matrix(30, 64);
  std::vector<float> sizes(64);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = 0.25f + 0.05f * static_cast<float>(i);
  matrix.multiply_rows(std::vector<float>(30, 3.0f));
  matrix.divide_columns(sizes);
  matrix.turn_rows(32);
  const MatrixInputs inputs = inputs_of(512, 64);
  const Fit fit(inputs, {"x"}, matrix);
  std::vector<float> others = related_rows(200, 64, 9);
  matrix.change_inputs(others);
  EXPECT_LT(loss(matrix, fitted(fit, matrix, kMost), others),
            0.6 * loss(matrix, nearest(matrix, kMost), others));
}

/// A graph of one step, a matrix of some type.
struct OneMatrix {
  Graph graph;
  OneMatrix(const std::string& weights, const Weight& matrix, bool turned) {
    GraphBuilder builder(graph);
    GraphBuilder::Entry entry;
    entry.vocabulary = 16;
    entry.max_segment = 8;
    builder.begin_entry(entry);
    const uint32_t table =
        builder.weight("table", 16, matrix.width(), std::vector<float>(16 * matrix.width(), 0.5f));
    const uint32_t x = builder.embedding("x", builder.tokens(), table);
    const uint32_t w = builder.weight("w", matrix.rows(), matrix.width(), matrix.values());
    builder.logits(builder.take_rows("tail", x), w, GraphBuilder::kNone);
    quantize(graph, {.weights = weights});
    if (turned) {
      EXPECT_EQ(turn_matrices(graph, {}), 1u);
    }
    plan(graph);
  }
};

TEST(Fit, PackingUsesItForMatricesThatInputsAreKnownOf) {
  const Weight matrix = random_matrix(130, 64);
  const MatrixInputs inputs = inputs_of(512, 64);
  for (const char* weights : {"int8", "int4"}) {
    for (const bool turned : {false, true}) {
      OneMatrix plain(weights, matrix, turned), known(weights, matrix, turned);
      const testing::PackedWeights a = testing::pack_all(plain.graph);
      const testing::PackedWeights b = testing::pack_all(known.graph, inputs);
      EXPECT_NE(a.data, b.data) << weights;
      EXPECT_EQ(testing::pack_all(plain.graph, inputs).data, b.data) << "the same every time";
      // Each by itself is farther away, and not much.
      EXPECT_GE(b.errors.at("w"), a.errors.at("w")) << weights;
      EXPECT_LE(b.errors.at("w"), 3 * a.errors.at("w")) << weights;
      EXPECT_EQ(a.errors.at("table"), b.errors.at("table"));
    }
  }
}

}  // namespace
}  // namespace oxbow::convert
