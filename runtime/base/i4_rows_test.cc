#include "runtime/base/i4_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace oxbow {
namespace {

TEST(I4Rows, CodesAreQuotientsRoundedToTheNearest) {
  for (int step = 1; step <= kMostI4RowStep; ++step) {
    for (int size = 0; size <= 128; ++size) {
      EXPECT_EQ(i4_row_code(size, step), std::min((2 * size + step) / (2 * step), kMostI4RowCode));
    }
  }
}

TEST(I4Rows, WhatFitsComesBackAsItWas) {
  for (int step = 1; step <= kMostI4RowStep; ++step) {
    int8_t codes[kI4RowColumns], back[kI4RowColumns];
    for (size_t i = 0; i < kI4RowColumns; ++i) {
      codes[i] = static_cast<int8_t>((static_cast<int>(i % 15) - 7) * step);
    }
    I4RowBlock block;
    pack_i4_block(codes, &block);
    unpack_i4_row(&block, kI4RowColumns, back);
    EXPECT_TRUE(std::equal(codes, codes + kI4RowColumns, back)) << step;
  }
}

TEST(I4Rows, LoseNoMoreThanWithTheStepOfTheLargestCode) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const int most = 1 + static_cast<int>(random() % 128);
    int8_t codes[kI4RowColumns], back[kI4RowColumns];
    int largest = 0;
    for (int8_t& code : codes) {
      code = static_cast<int8_t>(static_cast<int>(random() % (2u * static_cast<unsigned>(most))) -
                                 most);
      largest = std::max(largest, std::abs(int{code}));
    }
    I4RowBlock block;
    pack_i4_block(codes, &block);
    unpack_i4_row(&block, kI4RowColumns, back);
    const int step = std::clamp((largest + 6) / 7, 1, kMostI4RowStep);
    int error = 0, plain = 0;
    for (size_t i = 0; i < kI4RowColumns; ++i) {
      error += (codes[i] - back[i]) * (codes[i] - back[i]);
      const int size = std::abs(int{codes[i]}), lost = size - step * i4_row_code(size, step);
      plain += lost * lost;
      EXPECT_GE(back[i], -127);
    }
    EXPECT_LE(error, plain);
  }
}

TEST(I4Rows, BytesThatNobodyPackedAreCodesToo) {
  I4RowBlock block;
  std::fill_n(block.codes, sizeof(block.codes), uint8_t{0xff});
  block.step = 255;
  int8_t codes[kI4RowColumns];
  unpack_i4_row(&block, kI4RowColumns, codes);
  EXPECT_EQ(codes[0], static_cast<int8_t>(7 * 255));
}

}  // namespace
}  // namespace oxbow
