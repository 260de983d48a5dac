#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/positions/positions.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor tokens = i32_tensor("tokens", 6, 1), ids = i32_tensor("ids", 6, 1);
  TestTensor vectors = f32_tensor("vectors", 6, 3);
  schema::PositionsOptionsT options;
  OpRunner op{bind_positions};
  Fixture() {
    const int32_t values[] = {7, 1, 5, 1, 1, 3};
    for (size_t i = 0; i < 6; ++i) *tokens.i32(i) = values[i];
    tokens.limit = 8;
    ids.limit = 20;
    for (TestTensor* tensor : {&tokens, &ids, &vectors}) tensor->rows_symbol = 0;
    op.inputs = {&tokens};
    op.outputs = {&ids};
    op.symbols = {6};
  }
  void set(uint32_t offset, uint32_t wrap, int32_t pad_token = -1, uint32_t pad_position = 0) {
    options.offset = offset;
    options.wrap = wrap;
    options.pad_token = pad_token;
    options.pad_position = pad_position;
    op.options(options);
  }
  std::vector<int32_t> run() {
    EXPECT_EQ(op.bind_and_run(), Status::kOk) << op.message();
    return {ids.i32(), ids.i32() + op.symbols[0]};
  }
};

using Ids = std::vector<int32_t>;

TEST(Positions, CountOnFromTheStream) {
  Fixture s;
  s.set(0, 0);
  EXPECT_EQ(s.run(), (Ids{0, 1, 2, 3, 4, 5}));
  s.op.position = 9;
  s.op.symbols = {3};
  EXPECT_EQ(s.run(), (Ids{9, 10, 11}));
  EXPECT_EQ(*s.ids.i32(3), 3) << "untouched by the second run";
  s.set(2, 0);
  EXPECT_EQ(s.run(), (Ids{11, 12, 13}));
}

TEST(Positions, NeedNotLookAtTheTokens) {
  Fixture s;
  s.set(1, 0);
  s.op.inputs = {&s.vectors};
  EXPECT_EQ(s.run(), (Ids{1, 2, 3, 4, 5, 6}));
}

TEST(Positions, WrapAroundForEver) {
  Fixture s;
  s.set(16, 4);
  s.op.position = 6;
  EXPECT_EQ(s.run(), (Ids{18, 19, 16, 17, 18, 19}));
  s.op.position = (uint64_t{1} << 40) + 3;
  EXPECT_EQ(s.run(), (Ids{19, 16, 17, 18, 19, 16}));
}

TEST(Positions, PassOverPadTokens) {
  Fixture s;
  s.set(2, 0, 1, 1);
  EXPECT_EQ(s.run(), (Ids{2, 1, 3, 1, 1, 4}));
  s.op.position = 10;
  EXPECT_EQ(s.run(), (Ids{12, 1, 13, 1, 1, 14}));
  s.set(2, 2, 1, 19);
  EXPECT_EQ(s.run(), (Ids{2, 19, 3, 19, 19, 2}));
}

TEST(Positions, EndWithACleanFailure) {
  Fixture s;
  s.set(2, 0);
  s.op.position = 12;
  EXPECT_EQ(s.run(), (Ids{14, 15, 16, 17, 18, 19}));
  for (uint64_t position : {uint64_t{13}, uint64_t{18}, UINT64_MAX}) {
    s.op.position = position;
    ASSERT_EQ(s.op.bind(), Status::kOk);
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument);
    EXPECT_NE(std::string(s.op.message()).find("no more positions than 18"), std::string::npos)
        << s.op.message();
  }
  // Pads need no positions of their own.
  s.set(2, 0, 1, 1);
  s.op.position = 15;
  EXPECT_EQ(s.run(), (Ids{17, 1, 18, 1, 1, 19}));
  for (const auto& [position, row] : {std::pair{16, 5}, {17, 2}, {18, 0}, {30, 0}}) {
    s.op.position = static_cast<uint64_t>(position);
    ASSERT_EQ(s.op.bind(), Status::kOk);
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument);
    EXPECT_EQ(std::string(s.op.message()).rfind("token " + std::to_string(row) + " is at", 0), 0u)
        << s.op.message();
  }
}

TEST(Positions, PassOverPadsInLongTexts) {
  constexpr uint32_t kRows = 200;
  Fixture s;
  TestTensor tokens = i32_tensor("tokens", kRows, 1), ids = i32_tensor("ids", kRows, 1);
  tokens.rows_symbol = ids.rows_symbol = 0;
  ids.limit = kRows;
  s.op.inputs = {&tokens};
  s.op.outputs = {&ids};
  s.op.symbols = {kRows};
  s.set(0, 0, 1, 0);
  Ids expected;
  int32_t next = 0;
  for (uint32_t i = 0; i < kRows; ++i) {
    *tokens.i32(i) = i % 3 == 1 || i / 70 == 1 ? 1 : 5;
    expected.push_back(*tokens.i32(i) == 1 ? 0 : next++);
  }
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(Ids(ids.i32(), ids.i32() + kRows), expected);
}

struct Valid : Fixture {
  Valid() { set(2, 18, 1, 19); }
};

TEST(Positions, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Valid>({
      {"no options", [](Valid& s) { s.op.step.options.Reset(); }, "no PositionsOptions"},
      {"wrong options", [](Valid& s) { s.op.options(schema::PoolOptionsT()); },
       "no PositionsOptions"},
      {"inputs", [](Valid& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"outputs", [](Valid& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"no limit", [](Valid& s) { s.ids.limit = 0; }, "values below 0"},
      {"limit", [](Valid& s) { s.ids.limit = 1u << 31; }, "values below 2147483648"},
      {"offset", [](Valid& s) { s.set(20, 0); }, "offset 20 and wrap 0 reach"},
      {"offset and wrap", [](Valid& s) { s.set(3, 18); }, "offset 3 and wrap 18 reach"},
      {"huge offset", [](Valid& s) { s.set(UINT32_MAX, 1); }, "offset 4294967295 and wrap 1"},
      {"huge wrap", [](Valid& s) { s.set(2, UINT32_MAX); }, "and wrap 4294967295 reach"},
      {"pad", [](Valid& s) { s.set(2, 18, 1, 20); }, "pad position 20 reaches"},
      {"pad of vectors", [](Valid& s) { s.op.inputs = {&s.vectors}; }, "'vectors' is F32"},
      {"token width", [](Valid& s) { s.tokens.width = 2; }, "expected a width of 1"},
      {"token ring", [](Valid& s) { s.tokens.ring = 0; }, "in a ring"},
      {"id type", [](Valid& s) { s.op.outputs = {&s.vectors}; }, "'vectors' is F32"},
      {"id width", [](Valid& s) { s.ids.width = 2; }, "expected a width of 1"},
      {"id ring", [](Valid& s) { s.ids.ring = 0; }, "in a ring"},
      {"id rows", [](Valid& s) { s.ids.rows = 5; }, "expected equal rows"},
      {"id symbol", [](Valid& s) { s.ids.rows_symbol = -1; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
