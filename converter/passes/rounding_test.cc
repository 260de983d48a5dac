#include "converter/passes/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "converter/formats/bitnet.h"
#include "host/errors.h"
#include "host/safetensors.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

double squared_error(const std::vector<float>& values, const I4Group& group) {
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = double{to_f32(group.scale)} * group.codes[i] - values[i];
    error += difference * difference;
  }
  return error;
}

/// As Q4_0 rounds: the largest magnitude is code -8.
double plain_error(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  I4Group group;
  group.scale = to_f16(largest / -8);
  for (size_t i = 0; i < values.size(); ++i) {
    const float code = std::nearbyint(values[i] / to_f32(group.scale));
    group.codes[i] = static_cast<int8_t>(std::clamp(code, -8.0f, 7.0f));
  }
  return squared_error(values, group);
}

TEST(RoundToInt4, KeepsTheGroupsOfQ4) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const float scale =
        to_f32(to_f16(static_cast<float>(random() % 2000 + 1) * (trial % 2 == 0 ? 1e-4f : -1e-4f)));
    std::vector<float> values(kI4BlockColumns);
    for (float& value : values) value = scale * static_cast<float>(int(random() % 16) - 8);
    values[random() % values.size()] = scale * -8;
    EXPECT_EQ(squared_error(values, round_to_i4(values)), 0);
  }
}

TEST(RoundToInt4, KeepsGroupsWhateverTheirLargestCodeIs) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 400; ++trial) {
    const float scale = to_f32(to_f16(static_cast<float>(random() % 2000 + 1) * 1e-4f));
    const int most = trial % 8;
    std::vector<float> values(kI4BlockColumns);
    for (float& value : values) {
      value = scale * static_cast<float>(int(random() % (2 * most + 1)) - most);
    }
    EXPECT_EQ(squared_error(values, round_to_i4(values)), 0) << most;
  }
}

TEST(RoundToInt4, LosesLessThanByTheLargestMagnitude) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  double searched = 0, plain = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> values(trial % 32 + 1);
    for (float& value : values) value = normal(random);
    const double error = squared_error(values, round_to_i4(values));
    EXPECT_LE(error, plain_error(values) * 1.0001 + 1e-9);
    searched += error;
    plain += plain_error(values);
  }
  EXPECT_LT(searched, 0.9 * plain);
}

TEST(RoundToInt4, TakesZerosAndTheSmallestAndLargestNumbers) {
  for (const float value : {0.0f, 1e-30f, -1e-45f, 3e38f, -3e38f}) {
    const std::vector<float> values(kI4BlockColumns, value);
    const I4Group group = round_to_i4(values);
    EXPECT_TRUE(std::isfinite(to_f32(group.scale)));
    for (const int8_t code : group.codes) EXPECT_TRUE(code >= -8 && code <= 7);
  }
}

TEST(RoundToInt4Min, KeepsTheGroupsOfQ4WithMinsToTheBit) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 2000; ++trial) {
    const float scale = to_f32(to_f16(static_cast<float>(random() % 2000 + 1) * 1e-4f));
    const float min = to_f32(to_f16(static_cast<float>(int(random() % 4001) - 2000) * 7e-4f));
    const int most = trial % 16;
    std::vector<float> values(trial % 5 == 0 ? 8 : kI4BlockColumns);
    for (float& value : values) value = scale * static_cast<float>(random() % (most + 1)) + min;
    const I4MinGroup group = round_to_i4_min(values);
    bool exact = true;
    EXPECT_TRUE(lies_in_i4_min(values, &exact) && exact) << trial;
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(value_of(group, i), values[i]) << trial;
  }
}

TEST(RoundToInt4Min, KeepsCodesWhereScalesAndMinsHaveMoreThan16Bits) {
  // As in Q4_K: 16 bits times 6.
  std::mt19937 random(8);
  for (int trial = 0; trial < 500; ++trial) {
    const float scale = to_f32(to_f16(3e-4f)) * static_cast<float>(random() % 63 + 1);
    const float min = -to_f32(to_f16(2.3e-3f)) * static_cast<float>(random() % 64);
    std::vector<float> values(kI4BlockColumns);
    std::vector<int> codes;
    for (size_t i = 0; i < values.size(); ++i) {
      codes.push_back(i < 16 ? static_cast<int>(i) : static_cast<int>(random() % 16));
      values[i] = scale * static_cast<float>(codes[i]) + min;
    }
    bool exact = true;
    if (!lies_in_i4_min(values, &exact)) {
      // A step is next to nothing beside the min.
      EXPECT_GT(std::fabs(min), 32 * scale);
      continue;
    }
    const I4MinGroup group = round_to_i4_min(values);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(group.codes[i], codes[i]) << trial;
  }
}

TEST(RoundToInt4Min, HoldsBlocksAsTheirLibraryReadsThem) {
  const Safetensors file(testing::source_dir() + "/tests/formats/gguf/all_blocks.safetensors");
  const std::vector<float> q4_1 = file.floats("Q4_1"), q4_k = file.floats("Q4_K");
  const StoredTensor& raw = file.at("Q4_1.raw");
  size_t kept = 0;
  for (size_t i = 0; i < raw.shape[0]; ++i) {
    F16 scale, min;
    std::memcpy(&scale, raw.bytes.data() + i * raw.shape[1], sizeof(F16));
    std::memcpy(&min, raw.bytes.data() + i * raw.shape[1] + sizeof(F16), sizeof(F16));
    // Nobody writes others; random blocks are so.
    if (!(to_f32(scale) > 0)) continue;
    const std::span<const float> values =
        std::span(q4_1).subspan(i * kI4BlockColumns, kI4BlockColumns);
    bool exact = true;
    ASSERT_TRUE(lies_in_i4_min(values, &exact) && exact) << i;
    const I4MinGroup group = round_to_i4_min(values);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*most - *least == 15 * to_f32(scale)) {
      EXPECT_EQ(group.scale.bits, scale.bits) << i;
      EXPECT_EQ(group.min.bits, min.bits) << i;
      ++kept;
    }
    for (size_t j = 0; j < values.size(); ++j) ASSERT_EQ(value_of(group, j), values[j]) << i;
  }
  EXPECT_GT(kept, 0u);
  // Scales of 16 by 6 bits are rounded to 16; codes stay.
  size_t codes_kept = 0;
  for (size_t at = 0; at < q4_k.size(); at += kI4BlockColumns) {
    bool exact = true;
    codes_kept += lies_in_i4_min(std::span(q4_k).subspan(at, kI4BlockColumns), &exact);
  }
  EXPECT_GT(codes_kept, q4_k.size() / kI4BlockColumns / 2);
}

TEST(RoundToInt4Min, LosesLessThanWithoutAMin) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  double with = 0, without = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<float> values(kI4BlockColumns);
    for (float& value : values) value = normal(random);
    bool exact = true;
    EXPECT_FALSE(lies_in_i4_min(values, &exact) || lies_in_i4(values, &exact));
    const I4MinGroup group = round_to_i4_min(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double difference = double{value_of(group, i)} - values[i];
      with += difference * difference;
    }
    without += squared_error(values, round_to_i4(values));
  }
  EXPECT_LT(with, 0.9 * without);
}

TEST(RoundToInt4Min, TakesZerosAndTheSmallestAndLargestNumbers) {
  for (const float value : {0.0f, 1e-30f, -1e-45f, 3e38f, -3e38f}) {
    for (const float other : {0.0f, 1.0f, -value}) {
      std::vector<float> values(kI4BlockColumns, value);
      values[3] = other;
      const I4MinGroup group = round_to_i4_min(values);
      EXPECT_TRUE(std::isfinite(to_f32(group.scale)) && std::isfinite(to_f32(group.min)));
      for (const int8_t code : group.codes) EXPECT_TRUE(code >= 0 && code <= 15);
    }
  }
}

TEST(Ternary, RowsOfThreeValuesAreKnown) {
  const std::vector<float> exact = {0.5f, -0.5f, 0, 0, 0, 0, 3, 3, -3};
  EXPECT_EQ(ternary_rows(exact, 3, 3), (std::vector<float>{0.5f, 0, 3}));
  EXPECT_TRUE(ternary_rows(std::vector<float>{1, 2}, 1, 2).empty());
  // As BitNet rounds: the mean magnitude is the step, ties go to 0.
  std::vector<float> values = {1.5f, -0.5f, 0.25f, 1.75f};
  EXPECT_EQ(ternary_step(values), 1.0f);
  round_like_bitnet(values);
  EXPECT_EQ(values, (std::vector<float>{1, 0, 0, 1}));
}

TEST(Bitnet, FourRowsAreInAByteAndOtherShapesAndBitsAreRefused) {
  // Rows 0 and 1 in the lowest bits, rows 6 and 7 in the highest.
  const uint8_t bytes[] = {0b10'01'00'10, 0b00'01'10'01, 0b01'01'01'01, 0b10'10'10'10};
  StoredTensor tensor;
  tensor.dtype = Dtype::kU8;
  tensor.shape = {2, 2};
  tensor.count = 4;
  tensor.bytes = std::as_bytes(std::span(bytes));
  EXPECT_EQ(unpack_bitnet("w", tensor, 8, 2),
            (std::vector<float>{1, 0, 0, 1, -1, 1, 0, 1, 0, 0, 0, 1, 1, -1, 0, 1}));
  EXPECT_THROW(unpack_bitnet("w", tensor, 7, 2), InputError);
  EXPECT_THROW(unpack_bitnet("w", tensor, 8, 4), InputError);
  const uint8_t strange[] = {0xff, 0, 0, 0};
  tensor.bytes = std::as_bytes(std::span(strange));
  EXPECT_THROW(unpack_bitnet("w", tensor, 8, 2), InputError);
}

}  // namespace
}  // namespace oxbow::convert
