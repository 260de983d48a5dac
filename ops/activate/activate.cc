#include "ops/activate/activate.h"

#include <cmath>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

constexpr bool same(schema::Activation a, Activation b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(schema::Activation::None, Activation::kNone));
static_assert(same(schema::Activation::Relu, Activation::kRelu));
static_assert(same(schema::Activation::Gelu, Activation::kGelu));
static_assert(same(schema::Activation::GeluTanh, Activation::kGeluTanh));
static_assert(same(schema::Activation::Silu, Activation::kSilu));
static_assert(same(schema::Activation::Sigmoid, Activation::kSigmoid));
static_assert(same(schema::Activation::Tanh, Activation::kTanh));
static_assert(same(schema::Activation::GeluQuick, Activation::kGeluQuick));
static_assert(same(schema::Activation::Clamp, Activation::kClamp));
static_assert(same(schema::Activation::ReluSquared, Activation::kReluSquared));
static_assert(same(schema::Activation::EluPlusOne, Activation::kEluPlusOne));
static_assert(same(schema::Activation::Exp, Activation::kExp));
static_assert(same(schema::Activation::Softplus, Activation::kSoftplus));
static_assert(same(schema::Activation::SoftCap, Activation::kSoftCap));
static_assert(same(schema::Activation::MAX, Activation::kSoftCap));

// Elements in one task of a thread: enough to be worth a thread's while.
constexpr size_t kTaskElements = 4096;

struct Params {
  Tensor x, y;
  ActivateParams activation;
  ActivateKernel kernel;
};

Status run_activate(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t count = size_t{context.rows(p.x)} * p.x.width;
  const float* x = p.x.f32();
  float* y = Tensor(p.y).f32();
  parallel_for(context.pool, ceil_div(count, kTaskElements), [&](size_t task, size_t) {
    const size_t begin = task * kTaskElements;
    const size_t length = count - begin < kTaskElements ? count - begin : kTaskElements;
    p.kernel(p.activation, x + begin, length, y + begin);
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kActivateSignature = {
    .options = schema::OpOptions::ActivateOptions,
    .by_row = true,
    .inputs = {{.name = "x"}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

ActivateKernel pick_activate_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/activate/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status check_activation(BindContext& context, uint32_t activation, float limit,
                        ActivateParams* params) {
  constexpr auto kMax = static_cast<uint32_t>(schema::Activation::MAX);
  if (activation > kMax) {
    return context.fail("activation is %u, expected at most %u", activation, kMax);
  }
  *params = {static_cast<Activation>(activation), limit};
  // Others do not look at it.
  const bool limited =
      params->activation == Activation::kClamp || params->activation == Activation::kSoftCap;
  if (limited && (!std::isfinite(limit) || limit <= 0)) {
    return context.fail("limit is %g, expected a positive number", double{limit});
  }
  return Status::kOk;
}

Status bind_activate(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kActivateSignature));
  const auto* options = context.step().options_as_ActivateOptions();
  ActivateParams activation;
  OXB_TRY(check_activation(context, static_cast<uint32_t>(options->activation()), options->limit(),
                           &activation));
  if (activation.activation == Activation::kNone) {
    return context.fail("activation is 0, expected 1 to %u",
                        static_cast<unsigned>(schema::Activation::MAX));
  }
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {x, y, activation, pick_activate_kernel(context.reference_only())};
  *run = run_activate;
  return Status::kOk;
}

}  // namespace oxbow
