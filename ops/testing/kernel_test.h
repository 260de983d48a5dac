#pragma once

// What the tests of ops have in common: the kernels of a list, and what holds of every op that works row by row.
//
//   constexpr testing::Variant<AddKernel> kVariants[] = {
//   #define OXB_KERNEL(isa, fn) {isa, fn, #fn},
//   #include "ops/add/kernels.inc"
//   #undef OXB_KERNEL
//   };
//   testing::for_each_variant(kVariants, [&](AddKernel kernel) { ... });

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>

#include "ops/quantize/quantize.h"
#include "ops/testing/op_runner.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"
#include "runtime/base/cpu.h"

namespace oxbow::testing {

template <typename Kernel>
struct Variant {
  Isa isa;
  Kernel kernel;
  const char* name;
};

/// Calls `body` with every kernel of a list that this machine can run.
template <typename List, typename Body>
void for_each_variant(const List& variants, const Body& body) {
  for (const auto& variant : variants) {
    if (!cpu_supports(variant.isa)) continue;
    SCOPED_TRACE(variant.name);
    body(variant.kernel);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Runs a step whose output is float, with all tensors of its many rows counted by symbol 0, and expects the rows
/// behind that count untouched.
inline void expect_only_actual_rows(OpRunner& op) {
  const TestTensor& y = *op.outputs.at(0);
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (TestTensor* tensor : *list) {
      if (tensor->rows == y.rows) tensor->rows_symbol = 0;
    }
  }
  ASSERT_LT(op.symbols.at(0), y.rows);
  ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  for (size_t row = op.symbols[0]; row < y.rows; ++row) {
    for (size_t i = 0; i < y.width; ++i) ASSERT_TRUE(std::isnan(y.f32(row)[i])) << "untouched";
  }
}

/// A step from `x` to `y`, or to `q` where that takes its place; tests add what else goes in.
struct RowOpFixture {
  RowOpFixture(BindFunction bind, uint32_t rows, uint32_t width, uint32_t groups)
      : x(f32_tensor("x", rows, width)),
        y(f32_tensor("y", rows, width)),
        q(i8_tensor("q", rows, width, groups)),
        op(bind) {
    fill_uniform(x, 1);
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {rows - 1};
  }
  TestTensor x, y, q;
  OpRunner op;
};

/// Of a RowOpFixture: int8 rows are the float rows quantised, padding too, with any number of threads.
template <typename Fixture>
void expect_int8_is_float_quantised() {
  Fixture f32;
  ASSERT_EQ(f32.op.bind_and_run(), Status::kOk) << f32.op.message();
  const uint32_t width = f32.y.width, groups = f32.q.scale_groups;
  TestTensor expected = i8_tensor("expected", f32.y.rows, width, groups);
  for (size_t row = 0; row < f32.y.rows; ++row) {
    quantize_f32_i8_ref(f32.y.f32(row), width, {.groups = groups}, expected.i8(row),
                        expected.row_scales(row));
  }
  for (size_t threads : {1, 3}) {
    Fixture s;
    const Team team(threads);
    s.op.outputs = {&s.q};
    s.op.threads = threads;
    s.op.pool = team.pool();
    s.op.reference_only = false;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    EXPECT_EQ(s.op.scratch_bytes(), threads * round_up(width * sizeof(float), kTensorAlignment))
        << "a row of floats on whole cache lines, per thread";
    EXPECT_TRUE(same_bits(s.q, expected)) << threads << " threads";
  }
}

/// Of a RowOpFixture with at least four rows.
template <typename Fixture>
void expect_nan_and_infinity_spoil_their_own_row_only() {
  Fixture s;
  s.x.f32(1)[3] = std::nanf("");
  s.x.f32(2)[7] = std::numeric_limits<float>::infinity();
  s.op.outputs = {&s.q};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row : {1, 2}) {
    for (size_t i = 0; i < s.q.width; ++i) EXPECT_EQ(s.q.code(row, i), 0);
  }
  EXPECT_NE(s.q.row_scales(0)[0], 0.0f);
  EXPECT_NE(s.q.row_scales(3)[0], 0.0f);
}

/// Of a RowOpFixture: what is wrong with the output of any op that may write int8.
template <typename Fixture>
void expect_output_refusals() {
  expect_refusals<Fixture>({
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "expected F32 or I8"},
      {"y groups",
       [](Fixture& s) {
         s.op.outputs = {&s.q};
         s.q.scale_groups = 7;
       },
       "divide the width"},
      {"y width", [](Fixture& s) { s.y.width += 1; }, "expected a width of"},
      {"y rows", [](Fixture& s) { s.y.rows = 1; }, "expected equal rows"},
      {"y symbol", [](Fixture& s) { s.y.rows_symbol = 0; }, "expected equal rows"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
  });
}

}  // namespace oxbow::testing
