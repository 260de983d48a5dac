#include "ops/activate/activate.h"
#include "ops/common/vulkan_rows.h"
#include "ops/linear/linear.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(linear_f32_f32_row);
OXB_SHADER(linear_f32_f32_tile);
OXB_SHADER(linear_f32_i8_row);
OXB_SHADER(linear_f32_i8_tile);
OXB_SHADER(linear_i8_i4);
OXB_SHADER(linear_i8_i8_row);
OXB_SHADER(linear_i8_i8_tile);
// Of ops/quantize.
OXB_SHADER(quantize);

namespace {

/// From this many rows on tiles are worth their shared memory.
constexpr uint32_t kTileRows = 8;

/// What a group of threads computes: rows by channels of the first, and, where there is another for many rows, as many of
/// both.
struct Shaders {
  const VulkanShader& row;
  uint32_t row_rows, row_channels;
  const VulkanShader* tile;
  uint32_t tile_size;
};

struct Params {
  Tensor y;
  uint32_t row_rows, row_channels, tile_size;
};

bool may_tile(const Params& p) { return p.tile_size != 0 && p.y.rows >= kTileRows; }

bool has_four_bits(const Tensor& weight) {
  return weight.type == DataType::kI4 || weight.type == DataType::kI4Min;
}

/// The shader for few rows, that for many if there can be, and, for an int8 output, quantising.
Status prepare_linear(RunContext& context, const void* params,
                      std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.y);
  const bool tiles = may_tile(p) && rows >= kTileRows;
  const uint64_t row_groups =
      ceil_div(uint64_t{rows}, p.row_rows) * ceil_div(p.y.width, p.row_channels);
  for (DispatchValues& dispatch : dispatches) dispatch.values[0] = rows;
  size_t next = 0;
  OXB_TRY(spread_groups(context, tiles ? 0 : row_groups, &dispatches[next++]));
  if (may_tile(p)) {
    const uint64_t tile_groups =
        ceil_div(uint64_t{rows}, p.tile_size) * ceil_div(p.y.width, p.tile_size);
    OXB_TRY(spread_groups(context, tiles ? tile_groups : 0, &dispatches[next++]));
  }
  return next == dispatches.size() ? Status::kOk : spread_groups(context, rows, &dispatches[next]);
}

Shaders shaders_of(const Tensor& x, const Tensor& weight) {
  if (has_four_bits(weight)) return {shader_linear_i8_i4, 4, 64, nullptr, 0};
  if (x.type == DataType::kI8) {
    return {shader_linear_i8_i8_row, 1, 32, &shader_linear_i8_i8_tile, 32};
  }
  if (weight.type == DataType::kI8) {
    return {shader_linear_f32_i8_row, 1, 32, &shader_linear_f32_i8_tile, 16};
  }
  return {shader_linear_f32_f32_row, 1, 32, &shader_linear_f32_f32_tile, 16};
}

}  // namespace

Status bind_linear_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_LinearOptions();
  const Tensor x = context.input(0), weight = context.input(1), y = context.output(0);
  uint64_t float_bytes = 0;
  const bool has_shader =
      weight.type == DataType::kF32 || weight.type == DataType::kI8 || has_four_bits(weight);
  if (!has_shader || !fits_32_bits(x) || !fits_32_bits(weight) || !can_write_rows(y) ||
      !tensor_bytes(DataType::kF32, Layout::kRowMajor, y.rows, y.width, 0, &float_bytes) ||
      float_bytes > UINT32_MAX) {
    return Status::kOk;
  }
  const Shaders shaders = shaders_of(x, weight);
  auto& p = context.params<Params>();
  p = {y, shaders.row_rows, shaders.row_channels, shaders.tile_size};
  context.prepare(prepare_linear);
  // int8 rows need whole float rows first.
  const bool to_i8 = y.type == DataType::kI8;
  if (to_i8) context.request_scratch(float_bytes);
  const VulkanOperand to = to_i8 ? context.scratch(0, float_bytes) : context.out(0);
  // What is not there is never read; some buffer must be bound all the same.
  const size_t residual = options.has_bias() ? 3 : 2;
  const VulkanOperand operands[] = {context.in(0), context.in(1), to,
                                    context.in(options.has_bias() ? 2 : 1),
                                    context.in(options.has_residual() ? residual : 1)};
  const uint32_t constants[] = {x.width,
                                y.width,
                                options.has_bias(),
                                options.has_residual(),
                                static_cast<uint32_t>(options.activation()),
                                std::bit_cast<uint32_t>(options.limit()),
                                static_cast<uint32_t>(x.stride() / 4),
                                scale_word(x),
                                scale_word(weight),
                                weight.type == DataType::kI4Min,
                                x.scale_groups};
  // The last two are those of four bits.
  const std::span<const uint32_t> all(constants), common = all.first(all.size() - 2);
  OXB_TRY(context.dispatch(shaders.row, operands, has_four_bits(weight) ? all : common));
  if (may_tile(p)) {
    OXB_TRY(context.dispatch(*shaders.tile, operands, common));
    context.for_many_rows();
  }
  return to_i8 ? dispatch_row_output(context, shader_quantize, y, {to}, {}) : Status::kOk;
}

}  // namespace oxbow
