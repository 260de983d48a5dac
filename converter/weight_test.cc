#include "converter/weight.h"

#include <gtest/gtest.h>

#include <random>

#include "host/testing/files.h"

namespace oxbow::convert {
namespace {

std::vector<float> random_values(size_t count, bool short_ones) {
  std::mt19937 random(3);
  std::vector<float> values(count);
  for (float& value : values) {
    // Integers below 256 have eight bits: they fit in two bytes.
    value = static_cast<float>(random() % 255) - 127.0f;
    if (!short_ones) value /= 3.0f;
  }
  return values;
}

TEST(Weight, LargeOnesComeBackFromTheirFileAsTheyWere) {
  const testing::TemporaryDirectory directory;
  const auto file = std::make_shared<FloatFile>((directory / "model.oxb").string());
  constexpr uint32_t kRows = 500, kWidth = 300;
  for (const bool short_ones : {false, true}) {
    const std::vector<float> values = random_values(kRows * kWidth, short_ones);
    // Something before and behind it in the file.
    const Weight before(kRows, kWidth, random_values(kRows * kWidth, !short_ones), file);
    const Weight weight(kRows, kWidth, values, file);
    const Weight behind(kRows, kWidth, random_values(kRows * kWidth, !short_ones), file);
    EXPECT_EQ(weight.values(), values);
    const std::vector<float> some = weight.read(123, 77);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), values.begin() + 123 * kWidth));
    EXPECT_EQ(some.size(), 77u * kWidth);
    EXPECT_TRUE(weight.read(kRows, 0).empty());
    EXPECT_THROW((void)weight.read(1, kRows), std::logic_error);
  }
  EXPECT_EQ(directory.file_count(), 0u) << "the file has no name";
}

TEST(Weight, ChangesAreMadeWhenItIsReadInTheirOrderForAnyRows) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  Weight weight(2, 4, values);
  const Weight before = weight;
  weight.multiply_rows(std::vector<float>{1, 10});
  weight.divide_columns(std::vector<float>{1, 2, 1, 4});
  weight.turn_rows(2);
  weight.multiply_columns(std::vector<float>{2, 2, 4, 4});
  // Rows {1, 1, 3, 1} and {50, 30, 70, 20}; pairs become half their sum and half their difference.
  EXPECT_EQ(weight.values(), (std::vector<float>{2, 0, 8, 4, 80, 20, 180, 100}));
  EXPECT_EQ(weight.read(1, 1), (std::vector<float>{80, 20, 180, 100}));
  EXPECT_EQ(before.values(), values) << "copies are changed apart";
}

TEST(Weight, PartsCoverAllRowsOnce) {
  for (const uint32_t rows : {1u, 63u, 64u, 65u, 1000u}) {
    const Weight weight(rows, 20000, std::vector<float>(size_t{rows} * 20000, 1.0f));
    uint32_t next = 0;
    for_each_part(weight, [&](uint32_t first, const std::vector<float>& values) {
      EXPECT_EQ(first, next);
      EXPECT_EQ(first % 64, 0u);
      next += static_cast<uint32_t>(values.size() / 20000);
    });
    EXPECT_EQ(next, rows);
  }
}

}  // namespace
}  // namespace oxbow::convert
