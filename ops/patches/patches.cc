#include "ops/patches/patches.h"

#include "ops/common/checks.h"
#include "ops/common/row_output.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x;
  PatchGrid grid;
  size_t rows;
  RowOutput output;
};

Status run_patches(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.x);
  if (rows != p.rows) {
    return fail(context.error, Status::kInvalidArgument,
                "'%.60s' has %u rows, expected exactly %zu", p.x.name, rows, p.rows);
  }
  parallel_for(context.pool, p.output.y.rows, [&](size_t patch, size_t worker) {
    write_row(context, p.output, patch, worker,
              [&](float* y) { patches_f32_f32_ref(p.x.f32(), p.grid, patch, y); });
  });
  return Status::kOk;
}

const schema::PatchesOptions& options_of(const StepView& view) {
  return *view.step().options_as_PatchesOptions();
}

/// Sizes of images and patches are numbers of a file: their products are checked, and sums fit 64 bits.
Status check_side(BindContext& context, const char* side, uint64_t size, uint64_t patch,
                  uint64_t stride, uint64_t pad) {
  if (size == 0 || patch == 0 || stride == 0 || patch > size + 2 * pad) {
    return context.fail(
        "%s is %llu with patches of %llu, %llu apart, and %llu zeros on each side", side,
        static_cast<unsigned long long>(size), static_cast<unsigned long long>(patch),
        static_cast<unsigned long long>(stride), static_cast<unsigned long long>(pad));
  }
  return Status::kOk;
}

PatchGrid grid_of(const schema::PatchesOptions& options) {
  return {options.channels(),    options.height(),   options.width(),    options.patch_height(),
          options.patch_width(), options.stride_y(), options.stride_x(), options.pad_y(),
          options.pad_x(),       options.planar()};
}

Status check_sizes(BindContext& context) {
  const auto& options = *context.step().options_as_PatchesOptions();
  OXB_TRY(check_side(context, "height", options.height(), options.patch_height(),
                     options.stride_y(), options.pad_y()));
  OXB_TRY(check_side(context, "width", options.width(), options.patch_width(), options.stride_x(),
                     options.pad_x()));
  const PatchGrid grid = grid_of(options);
  uint64_t pixels = 0, patch = 0, width = 0, rows = 0;
  if (!checked_mul(options.height(), options.width(), &pixels) ||
      !checked_mul(options.patch_height(), options.patch_width(), &patch) ||
      !checked_mul(patch, options.channels(), &width) ||
      !checked_mul(grid.down(), grid.across(), &rows) || pixels > UINT32_MAX ||
      width > UINT32_MAX) {
    return context.fail("has more pixels than there is address space");
  }
  return Status::kOk;
}

// Products that check_sizes has seen to fit.
uint64_t pixels(const StepView& view) {
  return uint64_t{options_of(view).height()} * options_of(view).width();
}
uint64_t rows_of_image(const StepView& view) {
  return options_of(view).planar() ? options_of(view).channels() : pixels(view);
}
uint64_t width_of_image(const StepView& view) {
  return options_of(view).planar() ? pixels(view) : options_of(view).channels();
}
uint64_t patch_elements(const StepView& view) {
  const auto& options = options_of(view);
  return uint64_t{options.patch_height()} * options.patch_width() * options.channels();
}
uint64_t patch_count(const StepView& view) {
  const PatchGrid grid = grid_of(options_of(view));
  return uint64_t{grid.down()} * grid.across();
}

}  // namespace

constexpr OpSignature kPatchesSignature = {
    .options = schema::OpOptions::PatchesOptions,
    .check_options = check_sizes,
    .inputs = {{.name = "x",
                .width = Width::told(width_of_image),
                .rows = Rows::with_room_for(rows_of_image)}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::told(patch_elements),
                 .rows = Rows::told(patch_count)}},
};

Status bind_patches(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kPatchesSignature));
  const auto* options = context.step().options_as_PatchesOptions();
  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.grid = grid_of(*options);
  p.rows = options->planar() ? p.grid.channels : size_t{p.grid.height} * p.grid.width;
  OXB_TRY(bind_row_output(context, context.output(0), &p.output));
  *run = run_patches;
  return Status::kOk;
}

}  // namespace oxbow
