#include "ops/rope_angles/rope_angles.h"

#include "runtime/base/sincos.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor frequencies, y;
  uint64_t last;
};

Status run_rope_angles(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const float* frequencies = p.frequencies.f32();
  const size_t count = p.frequencies.width;
  parallel_for(context.pool, context.rows(p.y), [&](size_t row, size_t) {
    uint64_t position = context.position + row;
    if (p.last != 0 && position > p.last) position = p.last;
    float* y = Tensor(p.y).f32(row);
    for (size_t i = 0; i < count; ++i) {
      const SinCos angle = sincos_of(position, frequencies[i]);
      y[i] = static_cast<float>(angle.sin);
      y[count + i] = static_cast<float>(angle.cos);
    }
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kRopeAnglesSignature = {
    .options = schema::OpOptions::RopeAnglesOptions,
    .inputs = {{.name = "frequencies", .role = Role::kWeight, .rows = Rows::one()}},
    .outputs = {{.name = "y", .width = Width::times(2, 0)}},
};

Status bind_rope_angles(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRopeAnglesSignature));
  const auto* options = context.step().options_as_RopeAnglesOptions();
  const Tensor frequencies = context.input(0);
  const Tensor y = context.output(0);
  // Only the caller's rows have positions in the stream.
  if (context.may_set_symbol(y.rows_symbol)) {
    return context.fail("tensor '%s' has rows that a step counts, expected those of the tokens",
                        y.name);
  }
  auto& p = context.params<Params>();
  p = {frequencies, y, options->last()};
  *run = run_rope_angles;
  return Status::kOk;
}

}  // namespace oxbow
