#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ops/activate/activate.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr testing::Variant<ActivateKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/activate/kernels.inc"
#undef OXB_KERNEL
};

constexpr Activation kAll[] = {
    Activation::kNone,        Activation::kRelu,       Activation::kGelu,
    Activation::kGeluTanh,    Activation::kSilu,       Activation::kSigmoid,
    Activation::kTanh,        Activation::kGeluQuick,  Activation::kClamp,
    Activation::kReluSquared, Activation::kEluPlusOne, Activation::kExp,
    Activation::kSoftplus,    Activation::kSoftCap};

constexpr float kLimit = 2.5f;

double formula(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGeluQuick:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::kClamp:
      return std::fmax(-kLimit, std::fmin(kLimit, x));
    case Activation::kReluSquared:
      return x > 0 ? x * x : 0;
    case Activation::kEluPlusOne:
      return x > 0 ? x + 1 : std::exp(x);
    case Activation::kExp:
      return std::exp(x);
    case Activation::kSoftplus:
      return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
    case Activation::kSoftCap:
      return kLimit * std::tanh(x / kLimit);
  }
  return 0;
}

TEST(Activate, ReferenceFollowsTheFormula) {
  for (Activation activation : kAll) {
    for (float x = -30.0f; x <= 30.0f; x += 1.0f / 1023.0f) {
      float y = 0;
      activate_f32_f32_ref({activation, kLimit}, &x, 1, &y);
      // Near zero erfc's 6e-7 times x / 2 counts, x < 4 where erfc is not yet 0; further out a few
      // roundings of y itself, and of the sigmoid's exponent.
      ASSERT_NEAR(y, formula(activation, x), 1e-6 + 3e-7 * std::fabs(y))
          << "activation " << static_cast<int>(activation) << " of " << x;
    }
  }
}

TEST(Activate, TanhIsPreciseNearZero) {
  for (float x = 1.0f; x > 1e-30f; x *= 0.9f) {
    const float both[] = {x, -x};
    float y[2];
    activate_f32_f32_ref({Activation::kTanh}, both, 2, y);
    ASSERT_NEAR(y[0], std::tanh(double{x}), 2e-7 * x);
    ASSERT_EQ(y[1], -y[0]);
  }
}

TEST(Activate, SoftplusOfVeryNegativeNumbersIsTheirExponential) {
  for (float x = -1.0f; x > -80.0f; x -= 0.37f) {
    float y = 0;
    activate_f32_f32_ref({Activation::kSoftplus}, &x, 1, &y);
    // The relative errors of exp and log1p.
    ASSERT_NEAR(y / std::log1p(std::exp(double{x})), 1, 8e-7) << x;
  }
}

TEST(Activate, KeepsNanAndLargeValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Activation activation : kAll) {
    const float x[] = {nan, 3e38f, std::numeric_limits<float>::infinity(), -3e38f};
    float y[4];
    activate_f32_f32_ref({activation, kLimit}, x, 4, y);
    EXPECT_TRUE(std::isnan(y[0]));
    switch (activation) {
      case Activation::kSigmoid:
      case Activation::kTanh:
      case Activation::kSoftCap:
      case Activation::kClamp: {
        const bool limited = activation == Activation::kClamp || activation == Activation::kSoftCap;
        const float most = limited ? kLimit : 1.0f;
        EXPECT_EQ(y[1], most);
        EXPECT_EQ(y[2], most);
        EXPECT_EQ(y[3], activation == Activation::kSigmoid ? 0.0f : -most);
        break;
      }
      case Activation::kReluSquared:
      case Activation::kExp:
        EXPECT_EQ(y[1], x[2]);
        EXPECT_EQ(y[2], x[2]);
        EXPECT_EQ(y[3], 0.0f);
        break;
      default:
        EXPECT_EQ(y[1], x[1]);
        EXPECT_EQ(y[2], x[2]);
        EXPECT_EQ(y[3], activation == Activation::kNone ? x[3] : 0.0f);
    }
  }
}

TEST(Activate, EveryVariantGivesTheBitsOfTheReferenceAlsoInPlace) {
  testing::for_each_variant(kVariants, [&](ActivateKernel kernel) {
    for (Activation activation : kAll) {
      for (uint32_t size : testing::simd_sizes_up_to(130)) {
        TestTensor x = f32_tensor("x", 1, size), y = f32_tensor("y", 1, size);
        TestTensor expected = f32_tensor("expected", 1, size);
        fill_uniform(x, size, -8, 8);
        activate_f32_f32_ref({activation, kLimit}, x.f32(), size, expected.f32());
        kernel({activation, kLimit}, x.f32(), size, y.f32());
        kernel({activation, kLimit}, x.f32(), size, x.f32());
        for (uint32_t i = 0; i < size; ++i) {
          ASSERT_EQ(y.f32()[i], expected.f32()[i]) << i << " of " << size;
          ASSERT_EQ(x.f32()[i], expected.f32()[i]) << i << " of " << size << " in place";
        }
      }
    }
  });
}

struct Fixture {
  TestTensor x = f32_tensor("x", 70, 100), y = f32_tensor("y", 70, 100);
  OpRunner op{bind_activate};
  Fixture() {
    op.inputs = {&x};
    op.outputs = {&y};
    activation(schema::Activation::Relu);
    op.symbols = {0};
  }
  void activation(schema::Activation value, float limit = 0) {
    schema::ActivateOptionsT options;
    options.activation = value;
    options.limit = limit;
    op.options(options);
  }
};

TEST(Activate, RunsOverTheActualRowsOnly) {
  Fixture s;
  fill_uniform(s.x, 1);
  s.op.symbols = {69};
  testing::expect_only_actual_rows(s.op);
  for (size_t i = 0; i < 6900; ++i) ASSERT_EQ(s.y.f32()[i], std::fmax(s.x.f32()[i], 0.0f));
}

TEST(Activate, ClampsToTheLimitOfTheFileWithAnyNumberOfThreads) {
  for (size_t threads : {1, 3}) {
    Fixture s;
    fill_uniform(s.x, 1);
    s.activation(schema::Activation::Clamp, 0.25f);
    const testing::Team team(threads);
    s.op.threads = threads;
    s.op.pool = team.pool();
    s.op.reference_only = false;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t i = 0; i < 7000; ++i) {
      ASSERT_EQ(s.y.f32()[i], std::fmax(-0.25f, std::fmin(0.25f, s.x.f32()[i])));
    }
  }
}

TEST(Activate, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no ActivateOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::PoolOptionsT()); },
       "no ActivateOptions"},
      {"none", [](Fixture& s) { s.activation(schema::Activation::None); }, "activation is 0"},
      {"unknown", [](Fixture& s) { s.activation(static_cast<schema::Activation>(99)); },
       "activation is 99"},
      {"no limit", [](Fixture& s) { s.activation(schema::Activation::Clamp); }, "limit is 0"},
      {"limit < 0", [](Fixture& s) { s.activation(schema::Activation::Clamp, -1); }, "limit is -1"},
      {"limit inf", [](Fixture& s) { s.activation(schema::Activation::Clamp, HUGE_VALF); },
       "limit is inf"},
      {"limit nan", [](Fixture& s) { s.activation(schema::Activation::Clamp, std::nanf("")); },
       "limit is"},
      {"no input", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"no output", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"ring", [](Fixture& s) { s.x.ring = 0; }, "'x' is F32 in a ring"},
      {"type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y' is I32"},
      {"width", [](Fixture& s) { s.y.width = 99; }, "expected a width of 100"},
      {"rows", [](Fixture& s) { s.y.rows = 69; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.y.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
