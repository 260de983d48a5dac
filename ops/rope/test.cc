#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/rope/rope.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::TestTensor;

constexpr testing::Variant<RopeKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/rope/kernels.inc"
#undef OXB_KERNEL
};

/// One element of a row. The pair is found from the element, unlike in the kernels.
double formula(const TestTensor& x, const TestTensor& angles, size_t row, const RopeParams& params,
               size_t column) {
  const size_t i = column % params.head_width, start = column - i;
  if (i >= params.turned) return x.value(row, column);
  const size_t pairs = params.turned / 2;
  const size_t pair = params.adjacent ? i / 2 : i % pairs;
  const bool second = params.adjacent ? i % 2 == 1 : i >= pairs;
  const size_t other = start + (params.adjacent ? i ^ 1 : (second ? i - pairs : i + pairs));
  const double sin = angles.value(row, pair), cos = angles.value(row, pairs + pair);
  return x.value(row, column) * cos + (second ? 1 : -1) * x.value(row, other) * sin;
}

TEST(Rope, EveryVariantFollowsTheFormulaAlsoInPlace) {
  for (bool adjacent : {false, true}) {
    for (uint32_t turned : {2u, 4u, 8u, 14u, 16u, 18u, 32u, 34u, 64u, 128u}) {
      for (uint32_t rest : {0u, 1u, 16u}) {
        for (uint32_t heads : {1u, 3u}) {
          const RopeParams params = {heads, turned + rest, turned, adjacent};
          SCOPED_TRACE(::testing::Message() << heads << " heads, " << turned << " + " << rest
                                            << " adjacent " << adjacent);
          TestTensor x = f32_tensor("x", 1, heads * (turned + rest));
          TestTensor y = f32_tensor("y", 1, x.width), z = f32_tensor("z", 1, x.width);
          TestTensor angles = f32_tensor("angles", 1, turned);
          fill_uniform(x, turned);
          fill_uniform(angles, turned + 1);
          rope_f32_f32_f32_ref(x.f32(), angles.f32(), params, y.f32());
          // Two products up to 1, and a sum up to 2: half a unit in the last place each.
          for (size_t i = 0; i < x.width; ++i) {
            ASSERT_NEAR(y.f32()[i], formula(x, angles, 0, params, i), 2 * 0x1p-24) << i;
          }
          testing::for_each_variant(kVariants, [&](RopeKernel kernel) {
            kernel(x.f32(), angles.f32(), params, z.f32());
            EXPECT_TRUE(testing::same_bits(y, z));
            fill(z, std::vector<float>(x.f32(), x.f32() + x.width));
            kernel(z.f32(), angles.f32(), params, z.f32());
            EXPECT_TRUE(testing::same_bits(y, z)) << "in place";
          });
        }
      }
    }
  }
}

struct Fixture : testing::RowOpFixture {
  TestTensor angles = f32_tensor("angles", 6, 8);
  schema::RopeOptionsT options;
  Fixture() : RowOpFixture(bind_rope, 6, 30, 3) {
    fill_uniform(angles, 2);
    op.inputs = {&x, &angles};
    options.heads = 3;
    set_options();
  }
  void heads(uint32_t value) {
    options.heads = value;
    set_options();
  }
  void set_options() { op.options(options); }
};

TEST(Rope, RunsOverTheActualRowsOnly) {
  for (bool adjacent : {false, true}) {
    Fixture s;
    s.options.adjacent = adjacent;
    s.set_options();
    testing::expect_only_actual_rows(s.op);
    for (size_t row = 0; row < 5; ++row) {
      for (size_t i = 0; i < 30; ++i) {
        EXPECT_NEAR(s.y.f32(row)[i], formula(s.x, s.angles, row, {3, 10, 8, adjacent}, i),
                    2 * 0x1p-24);
      }
    }
  }
}

TEST(Rope, ToInt8IsTheFloatRowQuantisedWithAnyNumberOfThreads) {
  testing::expect_int8_is_float_quantised<Fixture>();
}

TEST(Rope, TurnsHeadsBehindTheirPositionsWhenThatIsWanted) {
  const auto run = [](TestTensor& y, bool reference_only) {
    TestTensor x = f32_tensor("x", 5, 96), angles = f32_tensor("angles", 5, 32);
    fill_uniform(x, 1);
    fill_uniform(angles, 2);
    testing::OpRunner op(bind_rope);
    schema::RopeOptionsT options;
    options.heads = 3;
    op.options(options);
    op.inputs = {&x, &angles};
    op.outputs = {&y};
    op.reference_only = reference_only;
    ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  };
  TestTensor plain = f32_tensor("plain", 5, 96),
             expected = testing::i8_tensor("expected", 5, 96, 3);
  run(plain, true);
  for (size_t row = 0; row < 5; ++row) {
    quantize_f32_i8_ref(plain.f32(row), 96, {.groups = 3, .hadamard = 32}, expected.i8(row),
                        expected.row_scales(row));
  }
  for (const bool reference_only : {false, true}) {
    TestTensor y = f32_tensor("y", 5, 96), q = testing::i8_tensor("q", 5, 96, 3);
    y.hadamard = q.hadamard = 32;
    run(y, reference_only);
    // Now `plain` holds turned rows.
    EXPECT_TRUE(testing::same_bits(y, plain));
    run(q, reference_only);
    EXPECT_TRUE(testing::same_bits(q, expected));
  }
}

TEST(Rope, NanSpoilsItsOwnPairOnly) {
  Fixture s;
  s.x.f32(1)[2] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(std::isnan(s.y.f32(1)[i]), i == 2 || i == 6) << i;
}

TEST(Rope, RefusesStepsThatMakeNoSense) {
  testing::expect_output_refusals<Fixture>();
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no RopeOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::PoolOptionsT()); }, "no RopeOptions"},
      {"no heads", [](Fixture& s) { s.heads(0); }, "has 0 heads"},
      {"heads", [](Fixture& s) { s.heads(4); }, "has 4 heads"},
      {"narrow heads", [](Fixture& s) { s.heads(5); }, "even width of at most 6"},
      {"odd angles", [](Fixture& s) { s.angles.width = 7; }, "even width of at most 10"},
      {"wide angles", [](Fixture& s) { s.angles.width = 12; }, "even width of at most 10"},
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"x type", [](Fixture& s) { s.op.inputs[0] = &s.q; }, "'q' is I8"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"angles type", [](Fixture& s) { s.angles.type = DataType::kI32; }, "'angles' is I32"},
      {"angles rows", [](Fixture& s) { s.angles.rows = 5; }, "expected equal rows"},
      {"angles symbol", [](Fixture& s) { s.angles.rows_symbol = 0; }, "expected equal rows"},
      {"angles ring", [](Fixture& s) { s.angles.ring = 0; }, "in a ring"},
  });
}

}  // namespace
}  // namespace oxbow
