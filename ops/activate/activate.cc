#include "ops/activate/activate.h"

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

static_assert(static_cast<int>(schema::Activation::None) == static_cast<int>(Activation::kNone));
static_assert(static_cast<int>(schema::Activation::Relu) == static_cast<int>(Activation::kRelu));
static_assert(static_cast<int>(schema::Activation::Gelu) == static_cast<int>(Activation::kGelu));
static_assert(static_cast<int>(schema::Activation::GeluTanh) ==
              static_cast<int>(Activation::kGeluTanh));
static_assert(static_cast<int>(schema::Activation::Silu) == static_cast<int>(Activation::kSilu));

// Elements in one piece of parallel work: enough to be worth a thread's while.
constexpr size_t kPiece = 4096;

struct Params {
  Tensor x, y;
  Activation activation;
  ActivateKernel kernel;
};

Status run_activate(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t count = size_t{context.rows(p.x)} * p.x.width;
  const float* x = p.x.f32();
  float* y = Tensor(p.y).f32();
  parallel_for(context.pool, ceil_div(count, kPiece), [&](size_t piece, size_t) {
    const size_t begin = piece * kPiece;
    const size_t length = count - begin < kPiece ? count - begin : kPiece;
    p.kernel(p.activation, x + begin, length, y + begin);
  });
  return Status::kOk;
}

}  // namespace

ActivateKernel pick_activate_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/activate/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status bind_activate(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 1, 1));
  const auto* options = context.step().options_as_ActivateOptions();
  if (options == nullptr) return fail_options(context, "ActivateOptions");
  const schema::Activation activation = options->activation();
  if (activation <= schema::Activation::None || activation > schema::Activation::MAX) {
    return context.fail("activation is %u, expected 1 to %u", static_cast<unsigned>(activation),
                        static_cast<unsigned>(schema::Activation::MAX));
  }
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32(context, x));
  OXB_TRY(check_f32(context, y));
  OXB_TRY(check_width(context, y, x.width));
  OXB_TRY(check_same_rows(context, x, y));

  auto& p = context.params<Params>();
  p = {x, y, static_cast<Activation>(activation), pick_activate_kernel(context.reference_only())};
  *run = run_activate;
  return Status::kOk;
}

}  // namespace oxbow
