#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/pool_rows/pool_rows.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr uint32_t kRows = 23, kWidth = 5;

/// Symbols: rows of x, of the second x, of the shape, of y.
struct Fixture {
  TestTensor x = f32_tensor("x", kRows, kWidth), second = f32_tensor("second", 8, kWidth);
  TestTensor factors = f32_tensor("factors", 7, kWidth), mask = i32_tensor("mask", kRows, 1);
  TestTensor shape = i32_tensor("shape", 2, 1), y = f32_tensor("y", kRows, kWidth);
  schema::PoolRowsOptionsT options;
  OpRunner op{bind_pool_rows};

  explicit Fixture(uint32_t rows = kRows) {
    fill_uniform(x, 1);
    fill_uniform(second, 2);
    fill_uniform(factors, 3);
    for (uint32_t i = 0; i < kRows; ++i) mask.i32()[i] = 1;
    x.rows_symbol = mask.rows_symbol = 0;
    second.rows_symbol = 1;
    shape.rows_symbol = 2;
    y.rows_symbol = 3;
    op.symbols = {rows, 8, 2, 99};
    op.symbol_maxima = {kRows, 8, 2, kRows};
    op.settable_symbols = {false, false, false, true};
    options.group = 4;
    op.inputs = {&x};
    op.outputs = {&y};
  }
  Status bind() {
    op.options(options);
    return op.bind();
  }
  void run(uint32_t groups) {
    op.options(options);
    ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
    ASSERT_EQ(op.symbols[3], groups);
  }
  Status refused() {
    op.options(options);
    EXPECT_EQ(op.bind(), Status::kOk) << op.message();
    return op.run();
  }
};

/// Floats added one after the other lose at most as many roundings as there are rows.
void expect_row(const TestTensor& y, size_t row, size_t column, double expected) {
  ASSERT_NEAR(y.value(row, column), expected, kRows * 0x1p-22) << "row " << row;
}

TEST(PoolRows, SumsGroupsAndWhatIsLeft) {
  for (uint32_t rows = 0; rows <= kRows; ++rows) {
    Fixture s(rows);
    s.run((rows + 3) / 4);
    for (uint32_t j = 0; j * 4 < rows; ++j) {
      for (uint32_t i = 0; i < kWidth; ++i) {
        double sum = 0;
        for (uint32_t r = j * 4; r < std::min(rows, j * 4 + 4); ++r) sum += s.x.value(r, i);
        expect_row(s.y, j, i, sum);
      }
    }
    if (rows < kRows - 3) {
      EXPECT_TRUE(std::isnan(s.y.value((rows + 3) / 4, 0))) << "untouched";
    }
  }
}

TEST(PoolRows, MeansOfMovedRowsCountTheZerosInFrontAndTheRealLengthAtTheEnd) {
  for (uint32_t rows = 1; rows <= kRows; ++rows) {
    Fixture s(rows);
    s.options.front = 3;
    s.options.mean = true;
    s.run((rows + 3) / 4);
    for (uint32_t j = 0; j * 4 < rows; ++j) {
      const uint32_t end = std::min(rows, j * 4 + 4);
      for (uint32_t i = 0; i < kWidth; ++i) {
        double sum = 0;
        for (uint32_t r = j * 4; r < end; ++r) sum += r < 3 ? 0.0 : s.x.value(r - 3, i);
        expect_row(s.y, j, i, sum / (end - j * 4));
      }
    }
  }
}

TEST(PoolRows, JoinsWhatIsLeftToTheLastGroupAndLeavesPaddingOut) {
  for (uint32_t rows = 0; rows <= kRows; ++rows) {
    for (uint32_t padding : {0u, 1u, 5u}) {
      Fixture s(rows);
      s.options.joins = s.options.has_mask = true;
      s.op.inputs.push_back(&s.mask);
      const uint32_t real = rows - std::min(rows, padding);
      for (uint32_t r = real; r < kRows; ++r) s.mask.i32()[r] = 0;
      s.run(real / 4);
      for (uint32_t j = 0; j < real / 4; ++j) {
        for (uint32_t i = 0; i < kWidth; ++i) {
          double sum = 0;
          for (uint32_t r = 0; r < real; ++r) {
            if (std::min(r / 4, real / 4 - 1) == j) sum += s.x.value(r, i);
          }
          expect_row(s.y, j, i, sum);
        }
      }
    }
  }
}

TEST(PoolRows, WithAShapeGroupsAreItsLastNumberAndTwoTensorsFollowEachOther) {
  Fixture s(12);
  s.options.group = 0;
  s.options.two = s.options.has_factors = s.options.has_shape = true;
  s.op.inputs = {&s.x, &s.second, &s.factors, &s.shape};
  s.op.symbols[1] = 4;
  s.shape.i32()[0] = 3;
  s.shape.i32()[1] = 4;
  s.run(4);
  for (uint32_t j = 0; j < 4; ++j) {
    const TestTensor& x = j < 3 ? s.x : s.second;
    for (uint32_t i = 0; i < kWidth; ++i) {
      double sum = 0;
      for (uint32_t r = 0; r < 4; ++r) sum += x.value((j % 3) * 4 + r, i) * s.factors.value(r, i);
      expect_row(s.y, j, i, sum);
    }
  }
}

TEST(PoolRows, WithoutNumbersOfAShapeGroupsAreThoseOfTheFile) {
  Fixture s(10);
  s.options.has_shape = true;
  s.op.inputs.push_back(&s.shape);
  s.op.symbols[2] = 0;
  s.run(3);
  expect_row(s.y, 2, 1, s.x.value(8, 1) + s.x.value(9, 1));
}

TEST(PoolRows, OneGroupOfAllRowsNeedsNoSymbol) {
  Fixture s(7);
  TestTensor one = f32_tensor("one", 1, kWidth);
  s.options.group = 0;
  s.options.mean = true;
  s.op.outputs = {&one};
  s.op.options(s.options);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  double sum = 0;
  for (uint32_t r = 0; r < 7; ++r) sum += s.x.value(r, 2);
  expect_row(one, 0, 2, sum / 7);
}

TEST(PoolRows, RefusesShapesThatDoNotFitTheRun) {
  const auto with_shape = [](int32_t last, uint32_t numbers) {
    auto s = std::make_unique<Fixture>(12);
    s->options.group = 0;
    s->options.has_shape = s->options.has_factors = true;
    s->op.inputs = {&s->x, &s->factors, &s->shape};
    s->shape.i32()[0] = s->shape.i32()[1] = last;
    s->op.symbols[2] = numbers;
    return s;
  };
  for (const int32_t last : {0, -4, 5, 24, INT32_MAX}) {
    EXPECT_EQ(with_shape(last, 2)->refused(), Status::kInvalidArgument) << last;
  }
  EXPECT_EQ(with_shape(4, 0)->refused(), Status::kInvalidArgument)
      << "no shape was given, and all rows are more than there are factors";
  EXPECT_EQ(with_shape(12, 2)->refused(), Status::kInvalidArgument) << "more rows than factors";
  EXPECT_EQ(with_shape(4, 2)->refused(), Status::kOk);
  Fixture crowded(kRows);
  crowded.options.group = 1;
  TestTensor few = f32_tensor("few", 4, kWidth);
  few.rows_symbol = 3;
  crowded.op.symbol_maxima[3] = 4;
  crowded.op.outputs = {&few};
  EXPECT_EQ(crowded.refused(), Status::kInvalidArgument) << "more groups than room";
}

TEST(PoolRows, ThreadsDoNotChangeTheBits) {
  Fixture one, many;
  testing::Team team(3);
  many.op.threads = 3;
  many.op.pool = team.pool();
  one.run(6);
  many.run(6);
  EXPECT_TRUE(testing::same_bits(one.y, many.y));
}

struct Refused : Fixture {
  Refused() { op.options(options); }
  void set(void (*change)(schema::PoolRowsOptionsT& o)) {
    change(options);
    op.options(options);
  }
};

TEST(PoolRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Refused>({
      {"no options", [](Refused& s) { s.op.step.options.Reset(); }, "has no PoolRowsOptions"},
      {"inputs", [](Refused& s) { s.op.inputs.push_back(&s.second); }, "has 2 inputs"},
      {"x type", [](Refused& s) { s.x.type = DataType::kI32; }, "expected F32"},
      {"width", [](Refused& s) { s.y.width = 4; }, "expected"},
      {"a symbol of the caller", [](Refused& s) { s.op.settable_symbols[3] = false; },
       "symbol of its own"},
      {"room", [](Refused& s) { s.y.rows = 3; }, "room for 3"},
      {"joins by a shape",
       [](Refused& s) {
         s.op.inputs.push_back(&s.shape);
         s.set([](auto& o) { o.has_shape = o.joins = true; });
       },
       "no shape"},
      {"joins with factors",
       [](Refused& s) {
         s.op.inputs.push_back(&s.factors);
         s.set([](auto& o) { o.has_factors = o.joins = true; });
       },
       "no factors"},
      {"mask without joins",
       [](Refused& s) {
         s.op.inputs.push_back(&s.mask);
         s.set([](auto& o) { o.has_mask = true; });
       },
       "last rows join"},
      {"joins without a group",
       [](Refused& s) {
         s.set([](auto& o) {
           o.joins = true;
           o.group = 0;
         });
       },
       "joins rows"},
      {"mask rows",
       [](Refused& s) {
         s.op.inputs.push_back(&s.mask);
         s.mask.rows_symbol = 1;
         s.set([](auto& o) { o.has_mask = o.joins = true; });
       },
       "expected equal rows"},
      {"factors of some rows",
       [](Refused& s) {
         s.op.inputs.push_back(&s.factors);
         s.factors.rows_symbol = 1;
         s.set([](auto& o) { o.has_factors = true; });
       },
       "fixed rows"},
      {"shape type",
       [](Refused& s) {
         s.op.inputs.push_back(&s.factors);
         s.set([](auto& o) {
           o.has_shape = true;
           o.group = 0;
         });
       },
       "expected I32"},
  });
}

}  // namespace
}  // namespace oxbow
