#include "ops/activate/activate.h"
#include "ops/common/vulkan_rows.h"
#include "ops/linear/linear.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(linear_f32_f32_row);
OXB_SHADER(linear_f32_f32_tile);
OXB_SHADER(linear_f32_i8_row);
OXB_SHADER(linear_f32_i8_tile);
OXB_SHADER(linear_i8_i8_row);
OXB_SHADER(linear_i8_i8_tile);
// Of ops/quantize.
OXB_SHADER(quantize);

namespace {

/// From this many rows on tiles are worth their shared memory.
constexpr uint32_t kTileRows = 8;

bool may_tile(const Tensor& y) { return y.rows >= kTileRows; }

/// What a group of threads computes.
struct Shaders {
  const VulkanShader& row;
  uint32_t row_channels;
  const VulkanShader& tile;
  uint32_t tile_size;
};

struct Params {
  Tensor y;
  uint32_t row_channels, tile_size;
};

/// The shader for few rows, that for many if there can be, and, for an int8 output, quantising.
Status prepare_linear(RunContext& context, const void* params,
                      std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.y);
  const bool tiles = rows >= kTileRows;
  const uint64_t row_groups = rows * ceil_div(uint64_t{p.y.width}, p.row_channels);
  const uint64_t tile_groups =
      ceil_div(uint64_t{rows}, p.tile_size) * ceil_div(p.y.width, p.tile_size);
  for (DispatchValues& dispatch : dispatches) dispatch.values[0] = rows;
  size_t next = 0;
  OXB_TRY(spread_groups(context, tiles ? 0 : row_groups, &dispatches[next++]));
  if (may_tile(p.y)) OXB_TRY(spread_groups(context, tiles ? tile_groups : 0, &dispatches[next++]));
  return next == dispatches.size() ? Status::kOk : spread_groups(context, rows, &dispatches[next]);
}

Shaders shaders_of(const Tensor& x, const Tensor& weight) {
  if (x.type == DataType::kI8) return {shader_linear_i8_i8_row, 8, shader_linear_i8_i8_tile, 32};
  if (weight.type == DataType::kI8) {
    return {shader_linear_f32_i8_row, 32, shader_linear_f32_i8_tile, 16};
  }
  return {shader_linear_f32_f32_row, 32, shader_linear_f32_f32_tile, 16};
}

}  // namespace

Status bind_linear_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_LinearOptions();
  const Tensor x = context.input(0), weight = context.input(1), y = context.output(0);
  uint64_t float_bytes = 0;
  const bool has_shader = weight.type == DataType::kF32 || weight.type == DataType::kI8;
  if (!has_shader || !fits_32_bits(x) || !fits_32_bits(weight) || !can_write_rows(y) ||
      !tensor_bytes(DataType::kF32, Layout::kRowMajor, y.rows, y.width, 0, &float_bytes) ||
      float_bytes > UINT32_MAX) {
    return Status::kOk;
  }
  const Shaders shaders = shaders_of(x, weight);
  context.params<Params>() = {y, shaders.row_channels, shaders.tile_size};
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
                                scale_word(weight)};
  OXB_TRY(context.dispatch(shaders.row, operands, constants));
  if (may_tile(y)) OXB_TRY(context.dispatch(shaders.tile, operands, constants));
  return to_i8 ? dispatch_row_output(context, shader_quantize, y, {to}, {}) : Status::kOk;
}

}  // namespace oxbow
