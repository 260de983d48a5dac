#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/embedding/embedding.h"
#include "ops/testing/refusals.h"
#include "ops/testing/vulkan_runner.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;
using testing::weight_tensor;

template <typename Element>
struct Variant {
  Isa isa;
  void (*kernel)(const Element* row, size_t width, float scale, float* y);
  const char* name;
};

/// The list's lines for one element type.
template <typename Element>
std::vector<Variant<Element>> variants() {
  std::vector<Variant<Element>> result;
#define OXB_KERNEL(element, isa, fn)                         \
  if constexpr (std::is_same_v<element, Element>) {          \
    if (cpu_supports(isa)) result.push_back({isa, fn, #fn}); \
  }
#include "ops/embedding/kernels.inc"
#undef OXB_KERNEL
  return result;
}

double number(float element) { return element; }
double number(int8_t element) { return element; }
double number(F16 element) { return to_f32(element); }
double number(BF16 element) { return to_f32(element); }

template <typename Element>
void expect_exact_rows(TestTensor (*make)(uint32_t size)) {
  for (const Variant<Element>& variant : variants<Element>()) {
    SCOPED_TRACE(variant.name);
    for (uint32_t size : testing::simd_sizes_up_to(130)) {
      TestTensor row = make(size), y = f32_tensor("y", 1, size);
      fill_uniform(row, size);
      const auto* elements = reinterpret_cast<const Element*>(row.data);
      variant.kernel(elements, size, 0.3f, y.f32());
      // One float product: exact but for its rounding.
      for (uint32_t i = 0; i < size; ++i) {
        ASSERT_EQ(y.f32()[i], static_cast<float>(double{0.3f} * number(elements[i])))
            << i << " of " << size;
      }
    }
  }
}

TEST(Embedding, EveryF32VariantScalesExactly) {
  expect_exact_rows<float>([](uint32_t size) { return f32_tensor("row", 1, size); });
}

TEST(Embedding, EveryI8VariantScalesExactly) {
  expect_exact_rows<int8_t>([](uint32_t size) { return i8_tensor("row", 1, size); });
}

TEST(Embedding, EveryVariantOfSixteenBitsScalesExactly) {
  expect_exact_rows<F16>(
      [](uint32_t size) { return weight_tensor("row", DataType::kF16, 1, size); });
  expect_exact_rows<BF16>(
      [](uint32_t size) { return weight_tensor("row", DataType::kBF16, 1, size); });
}

struct Fixture {
  TestTensor tokens = i32_tensor("tokens", 4, 1), table = f32_tensor("table", 10, 19);
  TestTensor table8 = i8_tensor("table8", 10, 19), y = f32_tensor("y", 4, 19);
  OpRunner op{bind_embedding};
  Fixture() {
    fill_uniform(table, 1);
    fill_uniform(table8, 2);
    const int32_t ids[] = {9, 0, 3, 3};
    for (size_t i = 0; i < 4; ++i) set_token(i, ids[i]);
    tokens.limit = 10;
    op.inputs = {&tokens, &table};
    op.outputs = {&y};
    op.symbols = {3};
    scale(2.5f);
  }
  void set_token(size_t row, int32_t id) { reinterpret_cast<int32_t*>(tokens.data)[row] = id; }
  void scale(float value) { set(value, 0, false); }
  void set(float scale, uint32_t first, bool partial) {
    schema::EmbeddingOptionsT options;
    options.scale = scale;
    options.first = first;
    options.partial = partial;
    op.options(options);
  }
};

TEST(Embedding, LooksUpTheRowsOfTheActualTokensOnly) {
  Fixture s;
  s.tokens.rows_symbol = s.y.rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t t = 0; t < 3; ++t) {
    const float* row = s.table.f32(static_cast<size_t>(s.tokens.i32(t)[0]));
    for (size_t i = 0; i < 19; ++i) EXPECT_EQ(s.y.f32(t)[i], row[i] * 2.5f);
  }
  EXPECT_TRUE(std::isnan(s.y.f32(3)[0])) << "untouched";
}

TEST(Embedding, LooksUpInt8RowsWithTheirScale) {
  Fixture s;
  s.op.inputs[1] = &s.table8;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t i = 0; i < 19; ++i) {
    const float factor = s.table8.scales[9] * 2.5f;
    EXPECT_EQ(s.y.f32(0)[i], static_cast<float>(s.table8.code(9, i)) * factor);
  }
}

TEST(Embedding, LooksUpRowsOfSixteenBits) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    Fixture s;
    TestTensor table = weight_tensor("table16", type, 10, 19);
    fill_uniform(table, 5);
    s.op.inputs[1] = &table;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    const float scale = s.op.step.options.AsEmbeddingOptions()->scale;
    for (size_t i = 0; i < 19; ++i) {
      EXPECT_EQ(s.y.f32()[i],
                static_cast<float>(table.value(static_cast<size_t>(*s.tokens.i32()), i)) * scale);
    }
  }
}

TEST(Embedding, LooksUpRowsInTheBlocksOfMatrices) {
  for (const DataType type : {DataType::kI8, DataType::kI4, DataType::kI4Min}) {
    Fixture s;
    TestTensor table = weight_tensor("blocks", type, 10, 19);
    fill_uniform(table, 6);
    s.op.inputs[1] = &table;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t t = 0; t < 4; ++t) {
      for (size_t i = 0; i < 19; ++i) {
        const double expected = 2.5 * table.value(static_cast<size_t>(s.tokens.i32(t)[0]), i);
        // A product, a sum and a product, each rounded.
        EXPECT_NEAR(s.y.f32(t)[i], expected, 4e-7 * (1 + std::fabs(expected)));
      }
    }
  }
}

TEST(Embedding, TurnsBackRowsOfAMatrixWhoseInputsAreTurned) {
  TestTensor tokens = i32_tensor("tokens", 2, 1), y = f32_tensor("y", 2, 64);
  TestTensor table = weight_tensor("blocks", DataType::kI8, 3, 64);
  fill_uniform(table, 7);
  for (int32_t t = 0; t < 2; ++t) reinterpret_cast<int32_t*>(tokens.data)[t] = t + 1;
  tokens.limit = 3;
  OpRunner op(bind_embedding);
  op.inputs = {&tokens, &table};
  op.outputs = {&y};
  schema::EmbeddingOptionsT options;
  options.turned = 32;
  op.options(options);
  ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  for (size_t t = 0; t < 2; ++t) {
    for (size_t first = 0; first < 64; first += 32) {
      for (size_t i = 0; i < 32; ++i) {
        double expected = 0;
        for (size_t j = 0; j < 32; ++j) {
          const bool odd = __builtin_popcountll(i & j) % 2 != 0;
          expected += (odd ? -1 : 1) * table.value(t + 1, first + j);
        }
        EXPECT_NEAR(y.f32(t)[first + i], expected, 1e-5);
      }
    }
  }
}

TEST(Embedding, FailsCleanlyOnATokenTheTableDoesNotHave) {
  // These are not below the tensor's limit: sessions refuse them, and shaders give zeros.
  const testing::WithoutVulkan paused;
  for (int32_t bad : {10, 1000000, -1, INT32_MIN}) {
    Fixture s;
    s.set_token(2, bad);
    ASSERT_EQ(s.op.bind(), Status::kOk);
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument);
    EXPECT_NE(std::string(s.op.message()).find("expected below 10"), std::string::npos);
  }
}

TEST(Embedding, OfATableThatStartsLaterLooksUpTheRestOfTheId) {
  Fixture s;
  s.set(1, 100, false);
  s.tokens.limit = 110;
  const int32_t ids[] = {100, 109, 105, 101};
  for (size_t t = 0; t < 4; ++t) s.set_token(t, ids[t]);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t t = 0; t < 4; ++t) {
    const float* row = s.table.f32(static_cast<size_t>(ids[t] - 100));
    for (size_t i = 0; i < 19; ++i) EXPECT_EQ(s.y.f32(t)[i], row[i]);
  }
  for (int32_t bad : {99, 0, 110, -1}) {
    s.set_token(2, bad);
    ASSERT_EQ(s.op.bind(), Status::kOk);
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument) << bad;
    EXPECT_NE(std::string(s.op.message()).find("expected below 110 and not below 100"),
              std::string::npos);
  }
}

TEST(Embedding, OfAPartialTableGivesZerosForOtherIds) {
  for (bool i8 : {false, true}) {
    Fixture s;
    TestTensor& table = i8 ? s.table8 : s.table;
    s.op.inputs[1] = &table;
    s.set(2, 100, true);
    s.tokens.limit = 1000;
    const int32_t ids[] = {99, 104, 110, 0};
    for (size_t t = 0; t < 4; ++t) s.set_token(t, ids[t]);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t t = 0; t < 4; ++t) {
      for (size_t i = 0; i < 19; ++i) {
        EXPECT_NEAR(s.y.f32(t)[i], t == 1 ? 2 * table.value(4, i) : 0, 1e-6);
      }
    }
    // The last id a file can name, with a table that would end beyond all of them.
    s.set(2, UINT32_MAX - 4, true);
    s.tokens.limit = UINT32_MAX;
    s.set_token(0, -5);
    s.set_token(1, 0);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t i = 0; i < 19; ++i) {
      EXPECT_NEAR(s.y.f32(0)[i], 2 * table.value(0, i), 1e-6);
      EXPECT_EQ(s.y.f32(1)[i], 0.0f) << "id 0 is below the first, not behind the last";
    }
  }
}

TEST(Embedding, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no EmbeddingOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::PoolOptionsT()); },
       "no EmbeddingOptions"},
      {"scale nan", [](Fixture& s) { s.scale(std::nanf("")); }, "scale is"},
      {"scale inf", [](Fixture& s) { s.scale(-HUGE_VALF); }, "scale is -inf"},
      {"no table", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"no limit", [](Fixture& s) { s.tokens.limit = 0; }, "values below 0"},
      {"limit", [](Fixture& s) { s.tokens.limit = 11; }, "values below 11"},
      {"no limit of a part",
       [](Fixture& s) {
         s.set(1, 0, true);
         s.tokens.limit = 0;
       },
       "values below 0"},
      {"limit of a later table",
       [](Fixture& s) {
         s.set(1, 5, false);
         s.tokens.limit = 16;
       },
       "values below 16, expected a limit from 1 to 15"},
      {"token type", [](Fixture& s) { s.op.inputs[0] = &s.y; }, "'y' is F32"},
      {"token width", [](Fixture& s) { s.tokens.width = 2; }, "expected a width of 1"},
      {"table type", [](Fixture& s) { s.table.type = DataType::kI32; }, "expected F32 or I8"},
      {"table of three values",
       [](Fixture& s) {
         s.op.inputs[1] = &s.table8;
         s.table8.type = DataType::kTernary;
         s.table8.layout = Layout::kBlock8x16;
       },
       "expected F32 or I8"},
      {"turned in blocks that do not fit",
       [](Fixture& s) {
         schema::EmbeddingOptionsT options;
         options.turned = 16;
         s.op.options(options);
       },
       "turned is 16"},
      {"table groups",
       [](Fixture& s) {
         s.op.inputs[1] = &s.table8;
         s.table8.scale_groups = 19;
       },
       "one scale a row"},
      {"table symbol", [](Fixture& s) { s.table.rows_symbol = 0; }, "fixed rows"},
      {"table ring", [](Fixture& s) { s.table.ring = 0; }, "in a ring"},
      {"y type", [](Fixture& s) { s.op.outputs = {&s.table8}; }, "'table8' is I8"},
      {"y width", [](Fixture& s) { s.y.width = 18; }, "expected a width of 19"},
      {"y rows", [](Fixture& s) { s.y.rows = 3; }, "expected equal rows"},
      {"y symbol", [](Fixture& s) { s.y.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
