#include "ops/activate/activate.h"
#include "ops/linear/linear.h"
#include "runtime/vulkan_op.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(linear_f32_f32);
OXB_SHADER(linear_f32_i8);
OXB_SHADER(linear_i8_i8);

namespace {

constexpr uint32_t kGroup = 64;

struct Params {
  Tensor y;
};

Status prepare_linear(RunContext& context, const void* params, std::span<VulkanSlot> slots) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.y);
  slots[0].values[0] = rows;
  return spread_groups(context, uint64_t{rows} * ceil_div(p.y.width, kGroup), &slots[0]);
}

const VulkanShader& shader_of(const Tensor& x, const Tensor& weight) {
  if (x.type == DataType::kI8) return shader_linear_i8_i8;
  return weight.type == DataType::kI8 ? shader_linear_f32_i8 : shader_linear_f32_f32;
}

}  // namespace

Status bind_linear_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_LinearOptions();
  const Tensor x = context.input(0), weight = context.input(1), y = context.output(0);
  const auto activation = static_cast<Activation>(options.activation());
  const bool simple = activation == Activation::kNone || activation == Activation::kRelu;
  if (!simple || y.type != DataType::kF32) return Status::kOk;
  if (!fits_32_bits(x) || !fits_32_bits(weight) || !fits_32_bits(y)) return Status::kOk;

  context.params<Params>() = {y};
  context.prepare(prepare_linear);
  // What is not there is never read; some buffer must be bound all the same.
  const size_t residual = options.has_bias() ? 3 : 2;
  const VulkanOperand operands[] = {context.in(0), context.in(1), context.out(0),
                                    context.in(options.has_bias() ? 2 : 1),
                                    context.in(options.has_residual() ? residual : 1)};
  const uint32_t constants[] = {x.width,
                                y.width,
                                options.has_bias(),
                                options.has_residual(),
                                activation == Activation::kRelu ? 1u : 0u,
                                static_cast<uint32_t>(x.stride() / 4),
                                scale_word(x),
                                scale_word(weight)};
  return context.dispatch(shader_of(x, weight), operands, constants);
}

}  // namespace oxbow
