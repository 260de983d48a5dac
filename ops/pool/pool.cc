#include "ops/pool/pool.h"

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  size_t group;
  void (*kernel)(const float* x, size_t group, size_t width, float* y);
};

Status run_pool(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.x),
               [&](size_t row, size_t) { p.kernel(p.x.f32(row), p.group, y.width, y.f32(row)); });
  return Status::kOk;
}

decltype(Params::kernel) pick_kernel(const schema::PoolOptions& options) {
  const bool mean = options.pooling() == schema::Pooling::Mean;
  if (options.neighbours()) {
    return mean ? pool_mean_neighbours_f32_f32_ref : pool_max_neighbours_f32_f32_ref;
  }
  return mean ? pool_mean_f32_f32_ref : pool_max_f32_f32_ref;
}

Status check_pooling(BindContext& context) {
  const auto& options = *context.step().options_as_PoolOptions();
  if (options.pooling() > schema::Pooling::MAX) {
    return context.fail("pooling is %u, expected at most %u",
                        static_cast<unsigned>(options.pooling()),
                        static_cast<unsigned>(schema::Pooling::MAX));
  }
  if (options.group() == 0) return context.fail("group is 0, expected at least 1");
  return Status::kOk;
}

/// 64 bits: the product of two numbers from the file.
uint64_t rows_side_by_side(const StepView& view) {
  return uint64_t{view.step().options_as_PoolOptions()->group()} * view.output().width;
}

}  // namespace

constexpr OpSignature kPoolSignature = {
    .options = schema::OpOptions::PoolOptions,
    .check_options = check_pooling,
    .inputs = {{.name = "x", .width = Width::told(rows_side_by_side)}},
    .outputs = {{.name = "y", .rows = Rows::of(0)}},
};

Status bind_pool(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kPoolSignature));
  const auto* options = context.step().options_as_PoolOptions();
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {x, y, options->group(), pick_kernel(*options)};
  *run = run_pool;
  return Status::kOk;
}

}  // namespace oxbow
