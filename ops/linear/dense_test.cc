// Dense layers of other libraries, each from the same list of cases; what a library cannot serve runs on our kernels.

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/activate/activate.h"
#include "ops/linear/linear.h"
#include "ops/quantize/quantize.h"
#include "ops/testing/op_runner.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::block_tensor;
using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr float kXScale = 0.017f;

struct Library {
  Backend backend;
  const char* name;
};

class Dense : public ::testing::TestWithParam<Library> {
 protected:
  void SetUp() override {
    if (!is_built_in(GetParam().backend)) GTEST_SKIP() << "not in this build";
  }
};

struct Case {
  uint32_t rows, channels, depth;
  bool has_bias, has_residual;
  schema::Activation activation;
};

std::vector<Case> cases() {
  using A = schema::Activation;
  std::vector<Case> list;
  for (uint32_t rows : {1, 2, 5, 16, 33, 70}) {
    for (uint32_t channels : {1, 15, 64, 130, 200}) {
      list.push_back({rows, channels, 37, rows % 2 == 0, channels % 2 == 0, A::None});
    }
  }
  for (uint32_t depth : {1, 4, 16, 100, 1025}) list.push_back({7, 41, depth, true, true, A::Relu});
  for (const A activation : {A::Gelu, A::Silu, A::Tanh}) {
    list.push_back({3, 96, 64, true, false, activation});
    list.push_back({40, 96, 64, false, true, activation});
  }
  return list;
}

std::string text(const Case& c) {
  return std::to_string(c.rows) + " x " + std::to_string(c.channels) + " x " +
         std::to_string(c.depth) + (c.has_bias ? ", bias" : "") +
         (c.has_residual ? ", residual" : "") + ", activation " +
         std::to_string(static_cast<int>(c.activation));
}

/// A step in both types. `x8` has a static scale.
struct Step {
  TestTensor x, x8, weight, weight8, bias, residual, y, y8;
  OpRunner op{bind_linear};
  schema::LinearOptionsT options;

  explicit Step(const Case& c)
      : x(f32_tensor("x", c.rows, c.depth)),
        x8(i8_tensor("x8", c.rows, c.depth)),
        weight(f32_tensor("weight", c.channels, c.depth)),
        weight8(block_tensor("weight8", c.channels, c.depth)),
        bias(f32_tensor("bias", 1, c.channels)),
        residual(f32_tensor("residual", c.rows, c.channels)),
        y(f32_tensor("y", c.rows, c.channels)),
        y8(i8_tensor("y8", c.rows, c.channels)) {
    uint64_t seed = c.depth;
    for (TestTensor* tensor : {&x, &x8, &weight, &weight8, &bias, &residual}) {
      fill_uniform(*tensor, seed++);
    }
    x8.static_scale = kXScale;
    for (uint32_t row = 0; row < c.rows; ++row) x8.row_scales(row)[0] = kXScale;
    options.has_bias = c.has_bias;
    options.has_residual = c.has_residual;
    options.activation = c.activation;
    op.reference_only = false;
    op.outputs = {&y};
  }
  void use_f32() { use(x, weight); }
  void use_i8() { use(x8, weight8); }
  void use(TestTensor& rows, TestTensor& matrix) {
    op.inputs = {&rows, &matrix};
    if (options.has_bias) op.inputs.push_back(&bias);
    if (options.has_residual) op.inputs.push_back(&residual);
    op.options(options);
  }
};

float activated(schema::Activation activation, float value) {
  float y = 0;
  activate_f32_f32_ref({static_cast<Activation>(activation), 0.0f}, &value, 1, &y);
  return y;
}

TEST_P(Dense, FloatLayersFollowTheFormula) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(text(c));
    Step s(c);
    s.use_f32();
    s.op.backend = GetParam().backend;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    ASSERT_NE(s.op.owned(), nullptr);
    EXPECT_STREQ(s.op.owned()->provider, GetParam().name);
    EXPECT_GE(s.op.owned()->bytes, size_t{c.channels} * c.depth * sizeof(float));
    for (size_t m = 0; m < c.rows; ++m) {
      for (size_t n = 0; n < c.channels; ++n) {
        double sum = 0, magnitude = 0;
        for (size_t k = 0; k < c.depth; ++k) {
          const double product = s.x.value(m, k) * s.weight.value(n, k);
          sum += product;
          magnitude += std::fabs(product);
        }
        if (c.has_bias) {
          sum += s.bias.value(0, n);
          magnitude += std::fabs(s.bias.value(0, n));
        }
        float expected = activated(c.activation, static_cast<float>(sum));
        if (c.has_residual) expected += s.residual.f32(m)[n];
        // Any order: each product is rounded at most once and then by at most depth additions, the bias
        // included. No activation is steeper than 1.13; activation and residual round a few times more.
        const double tolerance =
            1.13 * (c.depth + 1) * 0x1p-24 * magnitude + 4 * 0x1p-24 * (std::fabs(expected) + 1);
        ASSERT_NEAR(s.y.f32(m)[n], expected, tolerance) << m << ", " << n;
      }
    }
  }
}

/// What XNNPACK's int8 layer promises: the sum and a bias counted in products, scaled, rounded to even,
/// saturated.
int xnnpack_code(const Step& s, size_t row, size_t channel, float y_scale) {
  int64_t sum = 0;
  const bool zeros = s.weight8.scales[channel] == 0;
  for (size_t k = 0; k < s.x8.width && !zeros; ++k) {
    sum += s.x8.code(row, k) * s.weight8.code(channel, k);
  }
  const float w = zeros ? y_scale / kXScale : s.weight8.scales[channel];
  if (s.options.has_bias) {
    sum +=
        static_cast<int64_t>(std::nearbyint(double{s.bias.f32()[channel]} / double{kXScale * w}));
  }
  const float scaled = static_cast<float>(sum) * (kXScale * w / y_scale);
  return static_cast<int>(std::fmax(-127.0f, std::fmin(127.0f, std::nearbyint(scaled))));
}

TEST_P(Dense, StaticInt8LayersAreExact) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(text(c));
    Step s(c), own(c);
    // Sums of the widest layer saturate now and then with this, those of the others never.
    s.options.output_scale = own.options.output_scale = 0.04f;
    s.weight8.scales[0] = own.weight8.scales[0] = 0.0f;
    s.use_i8();
    own.use_i8();
    s.op.backend = GetParam().backend;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    ASSERT_EQ(own.op.bind_and_run(), Status::kOk) << own.op.message();
    ASSERT_NE(s.op.owned(), nullptr);
    EXPECT_EQ(own.op.owned(), nullptr);
    for (size_t m = 0; m < c.rows; ++m) {
      for (size_t n = 0; n < c.channels; ++n) {
        float expected = own.y.f32(m)[n];
        if (GetParam().backend == Backend::kXnnpack) {
          expected = static_cast<float>(xnnpack_code(s, m, n, 0.04f)) * 0.04f;
          if (c.activation != schema::Activation::None)
            expected = activated(c.activation, expected);
          if (c.has_residual) expected += s.residual.f32(m)[n];
        }
        ASSERT_EQ(s.y.f32(m)[n], expected) << m << ", " << n;
      }
    }
  }
}

TEST_P(Dense, AStaticOutputIsRoundedOnce) {
  for (const schema::Activation activation : {schema::Activation::None, schema::Activation::Relu}) {
    const Case c = {40, 70, 64, true, false, activation};
    Step s(c), own(c);
    s.y8.static_scale = own.y8.static_scale = 0.05f;
    s.use_i8();
    own.use_i8();
    s.op.outputs = {&s.y8};
    own.op.outputs = {&own.y8};
    s.op.backend = GetParam().backend;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    ASSERT_EQ(own.op.bind_and_run(), Status::kOk) << own.op.message();
    ASSERT_NE(s.op.owned(), nullptr);
    for (size_t m = 0; m < c.rows; ++m) {
      EXPECT_EQ(s.y8.row_scales(m)[0], 0.05f);
      for (size_t n = 0; n < c.channels; ++n) {
        int expected = own.y8.code(m, n);
        if (GetParam().backend == Backend::kXnnpack) {
          expected = xnnpack_code(s, m, n, 0.05f);
          if (activation == schema::Activation::Relu && expected < 0) expected = 0;
        }
        ASSERT_EQ(s.y8.code(m, n), expected) << m << ", " << n;
      }
      for (size_t n = c.channels; n < s.y8.stride(); ++n) ASSERT_EQ(s.y8.i8(m)[n], 0) << "padding";
    }
  }
}

TEST_P(Dense, RunsOverTheActualRowsAndThreadsDoNotChangeTheBits) {
  const Case c = {70, 200, 64, true, true, schema::Activation::Gelu};
  for (bool is_i8 : {false, true}) {
    Step one(c), three(c);
    testing::Team team(3);
    three.op.threads = 3;
    three.op.pool = team.pool();
    for (Step* s : {&one, &three}) {
      s->options.output_scale = 0.04f;
      is_i8 ? s->use_i8() : s->use_f32();
      for (TestTensor* tensor : {&s->x, &s->x8, &s->residual, &s->y}) tensor->rows_symbol = 0;
      s->op.backend = GetParam().backend;
      s->op.symbols = {1};
      ASSERT_EQ(s->op.bind(), Status::kOk) << s->op.message();
    }
    // Up and down again: a layer must not remember how many rows it had.
    for (const uint32_t rows : {1u, 69u, 2u, 33u, 0u, 1u}) {
      for (Step* s : {&one, &three}) {
        for (size_t i = 0; i < 70 * 200; ++i) s->y.f32()[i] = std::nanf("");
        s->op.symbols = {rows};
        ASSERT_EQ(s->op.run(), Status::kOk) << s->op.message();
      }
      for (size_t i = 0; i < rows * 200; ++i) ASSERT_EQ(one.y.f32()[i], three.y.f32()[i]) << i;
      for (size_t i = rows * 200; i < 70 * 200; ++i) {
        ASSERT_TRUE(std::isnan(one.y.f32()[i]) && std::isnan(three.y.f32()[i])) << "untouched";
      }
      for (size_t i = 0; i < rows * 200; ++i) ASSERT_FALSE(std::isnan(one.y.f32()[i])) << i;
    }
  }
}

TEST_P(Dense, WritesToTheCallersMemory) {
  const Case c = {5, 70, 37, true, false, schema::Activation::None};
  Step own(c), callers(c);
  TestTensor logits = f32_tensor("logits", 5, 70);
  callers.op.caller_output = logits.f32();
  for (Step* s : {&own, &callers}) {
    s->use_f32();
    s->op.backend = GetParam().backend;
    ASSERT_EQ(s->op.bind_and_run(), Status::kOk) << s->op.message();
  }
  for (size_t i = 0; i < 5 * 70; ++i) ASSERT_EQ(logits.f32()[i], own.y.f32()[i]);
}

TEST_P(Dense, WhatALibraryCannotServeHasTheBitsOfOurKernels) {
  const Case c = {5, 70, 37, true, true, schema::Activation::Gelu};
  for (int kind = 0; kind < 2; ++kind) {
    Step library(c), own(c);
    for (Step* s : {&library, &own}) {
      if (kind == 0) {
        s->use(s->x, s->weight8);  // Weights alone are int8.
      } else {
        s->x8.static_scale = 0;  // A scale for each row, which is known when it runs.
        s->use_i8();
      }
    }
    library.op.backend = GetParam().backend;
    ASSERT_EQ(library.op.bind_and_run(), Status::kOk) << library.op.message();
    ASSERT_EQ(own.op.bind_and_run(), Status::kOk);
    EXPECT_EQ(library.op.owned(), nullptr);
    for (size_t i = 0; i < 5 * 70; ++i) ASSERT_EQ(library.y.f32()[i], own.y.f32()[i]);
  }
}

TEST_P(Dense, AScaleThatXnnpackDoesNotTakeIsAnError) {
  if (GetParam().backend != Backend::kXnnpack) GTEST_SKIP() << "other libraries see no scales";
  for (const float scale : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity(), 1e30f}) {
    Step s({5, 70, 37, true, false, schema::Activation::None});
    s.options.output_scale = 0.04f;
    s.weight8.scales[69] = scale;
    s.use_i8();
    s.op.backend = GetParam().backend;
    OpRunner& op = s.op;
    // Counting sees no data and cannot know.
    EXPECT_NONFATAL_FAILURE(static_cast<void>(op.bind()), "counting and placing disagree");
    EXPECT_NE(std::string(op.message()).find("xnnpack cannot make this layer"), std::string::npos)
        << op.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, Dense,
                         ::testing::Values(Library{Backend::kXnnpack, "xnnpack"},
                                           Library{Backend::kAcl, "acl"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(LinearStatic, NonsenseOutputScalesAreRefused) {
  for (const float scale :
       {0.0f, -0.5f, std::nanf(""), std::numeric_limits<float>::infinity(), 1e-38f}) {
    Step s({5, 70, 37, true, false, schema::Activation::None});
    s.options.output_scale = scale;
    s.use_i8();
    EXPECT_EQ(s.op.bind(), Status::kFileCorrupt);
    EXPECT_NE(std::string(s.op.message()).find("output scale"), std::string::npos);
  }
}

}  // namespace
}  // namespace oxbow
