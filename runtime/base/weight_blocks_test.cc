#include "runtime/base/weight_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

TEST(Halves, EveryOneComesBackFromItsFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const F16 f16{static_cast<uint16_t>(bits)};
    const BF16 bf16{static_cast<uint16_t>(bits)};
    if (std::isnan(to_f32(f16))) {
      EXPECT_TRUE(std::isnan(to_f32(to_f16(to_f32(f16)))));
    } else {
      EXPECT_EQ(to_f16(to_f32(f16)).bits, bits);
    }
    if (std::isnan(to_f32(bf16))) {
      EXPECT_TRUE(std::isnan(to_f32(to_bf16(to_f32(bf16)))));
    } else {
      EXPECT_EQ(to_bf16(to_f32(bf16)).bits, bits);
    }
  }
}

TEST(Halves, RoundToTheNearestAndTiesToEven) {
  // Between two neighbours, just below and above the middle, and the middle itself.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = to_f32(F16{static_cast<uint16_t>(bits)});
    const double high = to_f32(F16{static_cast<uint16_t>(bits + 1)});
    const auto middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(to_f16(middle).bits, bits + bits % 2);
    EXPECT_EQ(to_f16(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(to_f16(std::nextafter(middle, 1e9f)).bits, bits + 1);
    EXPECT_EQ(to_f16(-std::nextafter(middle, 1e9f)).bits, 0x8000u + bits + 1);
  }
  EXPECT_EQ(to_f16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(to_bf16(1.00390625f).bits, 0x3f80) << "a tie, to even";
  EXPECT_EQ(to_bf16(1.01171875f).bits, 0x3f82) << "a tie, to even";
}

TEST(Blocks, CodesAreWhereTheyWerePut) {
  I4Block four = {};
  I4MinBlock four_min = {};
  TernaryBlock two = {};
  for (size_t row = 0; row < kBlockRows; ++row) {
    for (size_t i = 0; i < kI4BlockColumns; ++i) {
      set_code(four, row, i, static_cast<int>((row * 7 + i * 5) % 16) - 8);
      set_code(four_min, row, i, static_cast<int>((row * 7 + i * 5) % 16));
    }
    for (size_t i = 0; i < kTernaryBlockColumns; ++i) {
      set_code(two, row, i, static_cast<int>((row * 7 + i * 5) % 3) - 1);
    }
  }
  for (size_t row = 0; row < kBlockRows; ++row) {
    for (size_t i = 0; i < kI4BlockColumns; ++i) {
      EXPECT_EQ(code_of(four, row, i), static_cast<int>((row * 7 + i * 5) % 16) - 8);
      EXPECT_EQ(code_of(four_min, row, i), static_cast<int>((row * 7 + i * 5) % 16));
    }
    for (size_t i = 0; i < kTernaryBlockColumns; ++i) {
      EXPECT_EQ(code_of(two, row, i), static_cast<int>((row * 7 + i * 5) % 3) - 1);
    }
  }
  // As schema/model.fbs draws them.
  EXPECT_EQ(four.codes[(2 * 8 + 3) * 4 + 1] & 15, code_of(four, 3, 9) + 8);
  EXPECT_EQ(four.codes[(2 * 8 + 3) * 4 + 1] >> 4, code_of(four, 3, 25) + 8);
  EXPECT_EQ(four_min.codes[(2 * 8 + 3) * 4 + 1] & 15, code_of(four_min, 3, 9));
  EXPECT_EQ(four_min.codes[(2 * 8 + 3) * 4 + 1] >> 4, code_of(four_min, 3, 25));
  EXPECT_EQ(two.codes[3 * 4 + 1] >> 4 & 3, code_of(two, 3, 9) + 1);
}

TEST(TensorBytes, OnlyWhatAFileMayHoldHasASize) {
  uint64_t bytes = 0;
  EXPECT_TRUE(tensor_bytes(DataType::kF16, Layout::kRowMajor, 3, 5, 0, &bytes));
  EXPECT_EQ(bytes, 30u);
  EXPECT_TRUE(tensor_bytes(DataType::kI4, Layout::kBlock8x32, 9, 33, 0, &bytes));
  EXPECT_EQ(bytes, 4u * 144);
  EXPECT_TRUE(tensor_bytes(DataType::kTernary, Layout::kBlock8x16, 9, 17, 1, &bytes));
  EXPECT_EQ(bytes, 4u * 32 + 9 * 4);
  // Nothing of this size has an address in 32 bits.
  const bool has_size = sizeof(size_t) == 8;
  EXPECT_EQ(tensor_bytes(DataType::kI4, Layout::kBlock8x32, 0x7fffffff, 0x3fffffff, 0, &bytes),
            has_size);
  if (has_size) {
    EXPECT_EQ(bytes, (uint64_t{1} << 53) * 144);
  }
  EXPECT_TRUE(tensor_bytes(DataType::kI4Min, Layout::kBlock8x32Min, 9, 33, 0, &bytes));
  EXPECT_EQ(bytes, 4u * 160);
  EXPECT_EQ(
      tensor_bytes(DataType::kI4Min, Layout::kBlock8x32Min, 0x7fffffff, 0x3fffffff, 0, &bytes),
      has_size);
  if (has_size) {
    EXPECT_EQ(bytes, (uint64_t{1} << 53) * 160);
  }
  EXPECT_FALSE(tensor_bytes(DataType::kI4Min, Layout::kBlock8x32, 9, 33, 0, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kI4, Layout::kBlock8x32Min, 9, 33, 0, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kI4Min, Layout::kBlock8x32Min, 9, 33, 1, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kI4, Layout::kRowMajor, 9, 33, 0, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kI4, Layout::kBlock8x16, 9, 33, 0, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kI4, Layout::kBlock8x32, 9, 33, 1, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kTernary, Layout::kBlock8x16, 9, 34, 2, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kTernary, Layout::kBlock8x16, 9, 34, 0, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kBF16, Layout::kBlock8x4, 9, 33, 0, &bytes));
  EXPECT_FALSE(tensor_bytes(DataType::kF32, Layout::kBlock8x32, 9, 33, 0, &bytes));
}

}  // namespace
}  // namespace oxbow
