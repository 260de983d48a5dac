// The op: bind, run, refusals.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/activate/activate.h"
#include "ops/common/checks.h"
#include "ops/linear/linear.h"
#include "ops/linear/testing/formula.h"
#include "ops/quantize/quantize.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using linear_test::Expected;
using linear_test::formula;
using testing::block_tensor;
using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;
using testing::weight_tensor;

/// A step with every optional part; 60 rows and 280 channels cross the op's tasks of 48 or 24 and 256.
struct Fixture {
  TestTensor x = f32_tensor("x", 60, 37), x8 = i8_tensor("x8", 60, 37);
  TestTensor weight = f32_tensor("weight", 280, 37), weight8 = block_tensor("weight8", 280, 37);
  TestTensor bias = f32_tensor("bias", 1, 280), residual = f32_tensor("residual", 60, 280);
  TestTensor y = f32_tensor("y", 60, 280), y8 = i8_tensor("y8", 60, 280, 7);
  schema::LinearOptionsT options;
  OpRunner op{bind_linear};
  Fixture() {
    uint64_t seed = 1;
    for (TestTensor* tensor : {&x, &x8, &weight, &weight8, &bias, &residual}) {
      fill_uniform(*tensor, seed++);
    }
    options.activation = schema::Activation::Gelu;
    options.has_bias = options.has_residual = true;
    op.inputs = {&x, &weight, &bias, &residual};
    op.outputs = {&y};
    op.symbols = {59};
    set_options();
  }
  void set_options() { op.options(options); }
  void all_rows_symbolic() {
    for (TestTensor* tensor : {&x, &x8, &residual, &y, &y8}) tensor->rows_symbol = 0;
  }
};

/// Types of x and of the weight that go together.
struct TypePair {
  DataType x, weight;
};
constexpr TypePair kTypePairs[] = {
    {DataType::kF32, DataType::kF32},  {DataType::kF32, DataType::kI8},
    {DataType::kI8, DataType::kI8},    {DataType::kF32, DataType::kF16},
    {DataType::kF32, DataType::kBF16}, {DataType::kI8, DataType::kI4},
    {DataType::kI8, DataType::kI4Min}, {DataType::kI8, DataType::kTernary}};

/// How steep an activation is at most near x.
double steepness(schema::Activation activation, double x) {
  switch (activation) {
    case schema::Activation::Exp:
      return 1.01 * std::exp(x);
    case schema::Activation::ReluSquared:
      return 2.02 * std::fabs(x) + 0.01;
    default:
      return 1.13;
  }
}

/// Binds and runs every pair of types, and compares with the formula.
void check_op(bool has_bias, bool has_residual, schema::Activation activation) {
  for (const TypePair& pair : kTypePairs) {
    SCOPED_TRACE(::testing::Message()
                 << "weight " << int(pair.weight) << " bias " << has_bias << " residual "
                 << has_residual << " activation " << int(activation));
    Fixture s;
    s.all_rows_symbolic();
    TestTensor& x = pair.x == DataType::kI8 ? s.x8 : s.x;
    TestTensor weight = weight_tensor("weight", pair.weight, 280, 37);
    fill_uniform(weight, 3);
    s.op.inputs = {&x, &weight};
    if (has_bias) s.op.inputs.push_back(&s.bias);
    if (has_residual) s.op.inputs.push_back(&s.residual);
    s.options.has_bias = has_bias;
    s.options.has_residual = has_residual;
    s.options.activation = activation;
    s.options.limit = 0.75f;
    s.set_options();
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    EXPECT_EQ(s.op.scratch_bytes(), 0u);
    for (size_t m = 0; m < 59; ++m) {
      for (size_t n = 0; n < 280; ++n) {
        const Expected e = formula(x, m, weight, n, has_bias ? &s.bias : nullptr);
        const auto linear = static_cast<float>(e.value);
        float y = 0;
        activate_f32_f32_ref({static_cast<Activation>(activation), 0.75f}, &linear, 1, &y);
        if (has_residual) y += s.residual.f32(m)[n];
        // One more rounding each for the three steps.
        ASSERT_NEAR(s.y.f32(m)[n], y,
                    steepness(activation, e.value) * e.tolerance + 4 * 0x1p-24 * (std::fabs(y) + 1))
            << m << ", " << n;
      }
    }
    EXPECT_TRUE(std::isnan(s.y.f32(59)[0])) << "untouched";
  }
}

TEST(Linear, AddsBiasAndResidualAroundTheActivation) {
  for (bool has_bias : {false, true}) {
    for (bool has_residual : {false, true}) {
      for (auto activation : schema::EnumValuesActivation()) {
        check_op(has_bias, has_residual, activation);
      }
    }
  }
}

// A device may have a shader for few rows and one for many.
TEST(Linear, FewRowsAndManyFollowTheFormula) {
  for (const uint32_t rows : {3u, 20u}) {
    for (const TypePair& pair : kTypePairs) {
      SCOPED_TRACE(type_name(pair.weight));
      TestTensor x = pair.x == DataType::kI8 ? i8_tensor("x", rows, 48) : f32_tensor("x", rows, 48);
      TestTensor weight = weight_tensor("weight", pair.weight, 40, 48);
      TestTensor y = f32_tensor("y", rows, 40);
      fill_uniform(x, 1);
      fill_uniform(weight, 2);
      OpRunner op(bind_linear);
      op.options(schema::LinearOptionsT());
      op.inputs = {&x, &weight};
      op.outputs = {&y};
      ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
      for (size_t m = 0; m < rows; ++m) {
        for (size_t n = 0; n < 40; ++n) {
          const Expected e = formula(x, m, weight, n, nullptr);
          ASSERT_NEAR(y.f32(m)[n], e.value, e.tolerance + 0x1p-22) << m << ", " << n;
        }
      }
    }
  }
}

// Also on a device.
TEST(Linear, RowsMayHaveAScaleForEachGroupOfFourBits) {
  for (const DataType type : {DataType::kI4, DataType::kI4Min}) {
    for (const uint32_t rows : {1u, 3u, 20u}) {
      TestTensor x = i8_tensor("x", rows, 96, 3), y = f32_tensor("y", rows, 70);
      TestTensor weight = weight_tensor("weight", type, 70, 96);
      fill_uniform(x, 1);
      fill_uniform(weight, 2);
      for (const bool reference : {true, false}) {
        OpRunner op(bind_linear);
        op.options(schema::LinearOptionsT());
        op.inputs = {&x, &weight};
        op.outputs = {&y};
        op.reference_only = reference;
        ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
        for (size_t m = 0; m < rows; ++m) {
          for (size_t n = 0; n < 70; ++n) {
            const Expected e = formula(x, m, weight, n, nullptr);
            ASSERT_NEAR(y.f32(m)[n], e.value, e.tolerance + 0x1p-22) << m << ", " << n;
          }
        }
      }
    }
  }
}

TEST(Linear, ToInt8IsTheFloatRowQuantised) {
  for (const TypePair& pair : kTypePairs) {
    Fixture f32, i8;
    TestTensor weight = weight_tensor("weight", pair.weight, 280, 37);
    fill_uniform(weight, 3);
    for (Fixture* s : {&f32, &i8}) {
      s->all_rows_symbolic();
      if (pair.x == DataType::kI8) s->op.inputs[0] = &s->x8;
      s->op.inputs[1] = &weight;
    }
    i8.op.outputs = {&i8.y8};
    ASSERT_EQ(f32.op.bind_and_run(), Status::kOk) << f32.op.message();
    ASSERT_EQ(i8.op.bind_and_run(), Status::kOk) << i8.op.message();
    EXPECT_EQ(i8.op.scratch_bytes(), 24 * 280 * sizeof(float)) << "one tile of float rows";
    for (size_t row = 0; row < 59; ++row) {
      TestTensor expected = i8_tensor("expected", 1, 280, 7);
      quantize_f32_i8_ref(f32.y.f32(row), 280, {.groups = 7}, expected.i8(), expected.scales);
      for (size_t i = 0; i < 288; ++i)
        ASSERT_EQ(i8.y8.i8(row)[i], expected.i8()[i]) << "padding too";
      for (size_t g = 0; g < 7; ++g) ASSERT_EQ(i8.y8.row_scales(row)[g], expected.scales[g]);
    }
    EXPECT_TRUE(std::isnan(i8.y8.row_scales(59)[0])) << "untouched";
  }
}

TEST(Linear, ThreadsAndKernelsDoNotChangeTheBits) {
  for (const TypePair& pair : kTypePairs) {
    TestTensor weight = weight_tensor("weight", pair.weight, 280, 37);
    fill_uniform(weight, 3);
    SCOPED_TRACE(type_name(pair.weight));
    for (bool to_i8 : {false, true}) {
      Fixture expected;
      const auto prepare = [&](Fixture& s) {
        s.all_rows_symbolic();
        if (pair.x == DataType::kI8) s.op.inputs[0] = &s.x8;
        s.op.inputs[1] = &weight;
        if (to_i8) s.op.outputs = {&s.y8};
      };
      prepare(expected);
      ASSERT_EQ(expected.op.bind_and_run(), Status::kOk) << expected.op.message();
      for (size_t threads : {1, 2, 4, 8}) {
        Fixture got;
        prepare(got);
        const testing::Team team(threads);
        got.op.pool = team.pool();
        got.op.threads = threads;
        got.op.reference_only = false;
        ASSERT_EQ(got.op.bind_and_run(), Status::kOk) << got.op.message();
        EXPECT_TRUE(testing::same_bits(got.y, expected.y)) << threads << " threads";
        EXPECT_TRUE(testing::same_bits(got.y8, expected.y8)) << threads << " threads";
      }
    }
  }
}

TEST(Linear, WritesToTheCallersMemory) {
  Fixture own, callers;
  ASSERT_EQ(own.op.bind_and_run(), Status::kOk);
  TestTensor logits = f32_tensor("logits", 60, 280);
  callers.op.caller_output = logits.f32();
  ASSERT_EQ(callers.op.bind_and_run(), Status::kOk) << callers.op.message();
  for (size_t i = 0; i < 60 * 280; ++i) ASSERT_EQ(logits.f32()[i], own.y.f32()[i]);
  EXPECT_TRUE(std::isnan(callers.y.f32()[0])) << "untouched";
}

TEST(Linear, CannotQuantiseIntoTheCallersMemory) {
  Fixture s;
  TestTensor logits = f32_tensor("logits", 60, 280);
  s.op.caller_output = logits.f32();
  s.op.outputs = {&s.y8};
  EXPECT_EQ(s.op.bind(), Status::kFileCorrupt);
}

TEST(Linear, NanAndInfinitySpoilTheirOwnRowOnly) {
  Fixture s;
  s.x.f32(1)[3] = std::nanf("");
  s.x.f32(2)[36] = std::numeric_limits<float>::infinity();
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t n = 0; n < 280; ++n) {
    EXPECT_TRUE(std::isfinite(s.y.f32(0)[n]) && std::isfinite(s.y.f32(3)[n]));
    EXPECT_TRUE(std::isnan(s.y.f32(1)[n]));
    EXPECT_FALSE(std::isfinite(s.y.f32(2)[n])) << "inf, or gelu(-inf) = -inf * 0";
  }
  s.op.outputs = {&s.y8};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t n = 0; n < 280; ++n) EXPECT_EQ(s.y8.code(1, n), 0);
}

TEST(Linear, RefusesStepsThatMakeNoSense) {
  using F = Fixture;
  testing::expect_refusals<F>({
      {"no options", [](F& s) { s.op.step.options.Reset(); }, "no LinearOptions"},
      {"wrong options", [](F& s) { s.op.options(schema::PoolOptionsT()); }, "no LinearOptions"},
      {"activation",
       [](F& s) {
         s.options.activation = static_cast<schema::Activation>(99);
         s.set_options();
       },
       "activation is 99"},
      {"limit",
       [](F& s) {
         s.options.activation = schema::Activation::Clamp;
         s.set_options();
       },
       "limit is 0"},
      {"missing residual", [](F& s) { s.op.inputs.pop_back(); }, "has 3 inputs"},
      {"unexpected bias",
       [](F& s) {
         s.options.has_bias = false;
         s.set_options();
       },
       "expected 3 and 1"},
      {"outputs", [](F& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"x type", [](F& s) { s.x.type = DataType::kI32; }, "'x' is I32"},
      {"x ring", [](F& s) { s.x.ring = 0; }, "in a ring"},
      {"x groups",
       [](F& s) {
         s.op.inputs = {&s.x8, &s.weight8, &s.bias, &s.residual};
         s.x8.scale_groups = 37;
       },
       "one scale a row"},
      {"x groups of another size",
       [](F& s) {
         s.weight.type = DataType::kI4, s.weight.layout = Layout::kBlock8x32;
         s.op.inputs[0] = &s.x8;
         s.x8.scale_groups = 37;
       },
       "'x8' has 37 scales a row, expected one scale a row, or one for each 32 columns"},
      {"i8 x, f32 weight", [](F& s) { s.op.inputs[0] = &s.x8; }, "since 'x8' is I8"},
      {"f32 x, int4 weight",
       [](F& s) { s.weight.type = DataType::kI4, s.weight.layout = Layout::kBlock8x32; },
       "'x' is F32 [60, 37], expected I8 since 'weight' is I4"},
      {"int4 rows", [](F& s) { s.weight.type = DataType::kI4; }, "expected plain rows"},
      {"depth",
       [](F& s) {
         s.op.inputs = {&s.x8, &s.weight8, &s.bias, &s.residual};
         s.x8.width = s.weight8.width = kMaxI8Depth + 1;
       },
       "at most 131000 wide"},
      {"weight width", [](F& s) { s.weight.width = 36; }, "expected a width of 37"},
      {"weight symbol", [](F& s) { s.weight.rows_symbol = 0; }, "of fixed rows"},
      {"weight ring", [](F& s) { s.weight.ring = 0; }, "in a ring"},
      {"weight unpacked",
       [](F& s) {
         s.op.inputs[1] = &s.weight8;
         s.weight8.layout = Layout::kRowMajor;
       },
       "I8 in blocks"},
      {"weight groups",
       [](F& s) {
         s.op.inputs[1] = &s.weight8;
         s.weight8.scale_groups = 37;
       },
       "one scale a row"},
      {"bias width", [](F& s) { s.bias.width = 69; }, "expected a width of 280"},
      {"bias rows", [](F& s) { s.op.inputs[2] = &s.residual; }, "exactly one row"},
      {"residual type", [](F& s) { s.op.inputs[3] = &s.y8; }, "'y8' is I8"},
      {"residual width", [](F& s) { s.op.inputs[3] = &s.x; }, "expected a width of 280"},
      {"residual rows", [](F& s) { s.residual.rows = 59; }, "expected equal rows"},
      {"residual symbol", [](F& s) { s.residual.rows_symbol = 0; }, "expected equal rows"},
      {"y width", [](F& s) { s.y.width = 71; }, "expected a width of 280"},
      {"y rows", [](F& s) { s.y.rows = 41; }, "expected equal rows"},
      {"y type", [](F& s) { s.y.type = DataType::kI32; }, "expected F32 or I8"},
      {"y ring", [](F& s) { s.y.ring = 0; }, "in a ring"},
      {"y groups",
       [](F& s) {
         s.op.outputs = {&s.y8};
         s.y8.scale_groups = 3;
       },
       "divide the width"},
  });
}

}  // namespace
}  // namespace oxbow
