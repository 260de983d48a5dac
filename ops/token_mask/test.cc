#include <gtest/gtest.h>

#include "ops/testing/refusals.h"
#include "ops/token_mask/token_mask.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor tokens = i32_tensor("tokens", 6, 1), mask = i32_tensor("mask", 6, 1);
  TestTensor floats = f32_tensor("floats", 6, 1);
  OpRunner op{bind_token_mask};
  Fixture() {
    const int32_t values[] = {7, 1, 0, 1, 5, 1};
    for (size_t i = 0; i < 6; ++i) *tokens.i32(i) = values[i];
    tokens.limit = 8;
    mask.limit = 2;
    op.inputs = {&tokens};
    op.outputs = {&mask};
    op.symbols = {5};
    pad(1);
  }
  void pad(uint32_t token) {
    schema::TokenMaskOptionsT options;
    options.pad_token = token;
    op.options(options);
  }
};

TEST(TokenMask, IsZeroForThePadTokenOfTheActualRows) {
  for (uint32_t pad : {0u, 1u, 7u, 100u, UINT32_MAX}) {
    Fixture s;
    s.tokens.rows_symbol = s.mask.rows_symbol = 0;
    s.pad(pad);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(*s.mask.i32(i), *s.tokens.i32(i) == static_cast<int64_t>(pad) ? 0 : 1);
    }
    EXPECT_EQ(*s.mask.i32(5), -1) << "untouched";
  }
}

TEST(TokenMask, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no TokenMaskOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::PoolOptionsT()); },
       "no TokenMaskOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.push_back(&s.mask); }, "has 2 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"limit", [](Fixture& s) { s.mask.limit = 1; }, "values below 1"},
      {"token type", [](Fixture& s) { s.op.inputs = {&s.floats}; }, "'floats' is F32"},
      {"token width", [](Fixture& s) { s.tokens.width = 2; }, "expected a width of 1"},
      {"token ring", [](Fixture& s) { s.tokens.ring = 0; }, "in a ring"},
      {"mask type", [](Fixture& s) { s.op.outputs = {&s.floats}; }, "'floats' is F32"},
      {"mask width", [](Fixture& s) { s.mask.width = 3; }, "expected a width of 1"},
      {"mask ring", [](Fixture& s) { s.mask.ring = 0; }, "in a ring"},
      {"rows", [](Fixture& s) { s.mask.rows = 5; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.mask.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
