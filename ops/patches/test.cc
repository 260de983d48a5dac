#include <gtest/gtest.h>

#include <vector>

#include "ops/patches/patches.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// 2 channels of 5 by 7 pixels, patches of 2 by 3 that overlap, zeros around.
struct Fixture {
  bool planar;
  TestTensor x, y;
  schema::PatchesOptionsT options;
  OpRunner op{bind_patches};

  explicit Fixture(bool planes = true, bool i8 = false)
      : planar(planes),
        x(planes ? f32_tensor("x", 2, 35) : f32_tensor("x", 35, 2)),
        y(i8 ? testing::i8_tensor("y", 12, 12) : f32_tensor("y", 12, 12)) {
    fill_uniform(x, 3);
    options.channels = 2;
    options.height = 5;
    options.width = 7;
    options.patch_height = 2;
    options.patch_width = 3;
    options.stride_y = 2;
    options.stride_x = 2;
    options.pad_y = 1;
    options.pad_x = 1;
    options.planar = planes;
    op.options(options);
    op.inputs = {&x};
    op.outputs = {&y};
  }
  template <typename Change>
  void change(const Change& apply) {
    apply(options);
    op.options(options);
  }
  /// A pixel, or zero outside.
  double pixel(size_t channel, int64_t row, int64_t column) const {
    if (row < 0 || row >= 5 || column < 0 || column >= 7) return 0;
    const auto at = static_cast<size_t>(row * 7 + column);
    return planar ? x.value(channel, at) : x.value(at, channel);
  }
};

TEST(Patches, CutsPlanesAndPixelsWithZerosAround) {
  for (const bool planar : {true, false}) {
    Fixture s(planar);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t patch = 0; patch < 12; ++patch) {
      const auto top = static_cast<int64_t>(patch / 4 * 2) - 1;
      const auto left = static_cast<int64_t>(patch % 4 * 2) - 1;
      for (size_t c = 0; c < 2; ++c) {
        for (size_t i = 0; i < 2; ++i) {
          for (size_t j = 0; j < 3; ++j) {
            const size_t at = planar ? (c * 2 + i) * 3 + j : (i * 3 + j) * 2 + c;
            ASSERT_EQ(s.y.value(patch, at),
                      s.pixel(c, top + static_cast<int64_t>(i), left + static_cast<int64_t>(j)))
                << planar << " " << patch << " " << c << " " << i << " " << j;
          }
        }
      }
    }
  }
}

TEST(Patches, WhatDoesNotFillAPatchIsLeftOut) {
  Fixture s;
  TestTensor y = f32_tensor("y", 4, 12);
  s.change([](auto& o) {
    o.pad_x = o.pad_y = 0;
    o.stride_x = 3;
  });
  s.op.outputs = {&y};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t j = 0; j < 3; ++j) EXPECT_EQ(y.value(3, j), s.pixel(0, 2, 3 + int64_t(j)));
}

TEST(Patches, AnInt8OutputIsTheFloatOutputQuantisedWithAnyNumberOfThreads) {
  Fixture f32, one(true, true), three(true, true);
  const testing::Team team(3);
  three.op.pool = team.pool();
  three.op.threads = 3;
  for (Fixture* s : {&f32, &one, &three}) {
    ASSERT_EQ(s->op.bind_and_run(), Status::kOk) << s->op.message();
  }
  EXPECT_TRUE(testing::same_bits(one.y, three.y));
  for (size_t row = 0; row < 12; ++row) {
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(one.y.value(row, i), f32.y.value(row, i), 0.5 / 127 + 1e-6);
    }
  }
}

TEST(Patches, AnImageWithOtherRowsIsRefusedWhenItComes) {
  Fixture s;
  s.x.with_symbol(0);
  s.op.symbols = {1};
  s.op.symbol_maxima = {2};
  ASSERT_EQ(s.op.bind(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.op.run(), Status::kInvalidArgument);
  EXPECT_NE(std::string(s.op.message()).find("'x' has 1 rows, expected exactly 2"),
            std::string::npos)
      << s.op.message();
}

TEST(Patches, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no stride", [](Fixture& s) { s.change([](auto& o) { o.stride_x = 0; }); }, "width is 7"},
      {"no patch", [](Fixture& s) { s.change([](auto& o) { o.patch_height = 0; }); },
       "height is 5"},
      {"a patch larger than the image",
       [](Fixture& s) { s.change([](auto& o) { o.patch_width = 10; }); }, "patches of 10"},
      {"other pixels", [](Fixture& s) { s.change([](auto& o) { o.width = 8; }); }, "a width of 40"},
      {"too few rows", [](Fixture& s) { s.change([](auto& o) { o.channels = 3; }); }, "expected 3"},
      {"other patches", [](Fixture& s) { s.change([](auto& o) { o.stride_x = 1; }); },
       "expected 21 rows"},
      {"other elements", [](Fixture& s) { s.change([](auto& o) { o.patch_width = 2; }); },
       "a width of 8"},
      {"a size that wraps",
       [](Fixture& s) {
         s.change([](auto& o) {
           o.height = o.patch_height = 0xffffffffu;
           o.width = o.patch_width = 0xffffffffu;
           o.channels = 0xffffffffu;
         });
       },
       "address space"},
  });
}

}  // namespace
}  // namespace oxbow
