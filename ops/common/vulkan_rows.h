#pragma once

// The host's half of shaders that share a shape: one group of threads for each row, written as float or
// int8 (ops/common/vulkan/row_output.glsl), or one thread for each element (elements.glsl).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "runtime/device/vulkan/vulkan_op.h"

namespace oxbow {

/// What a group of threads keeps of one row.
inline constexpr uint32_t kMaxRowScaleGroups = 256;
/// Threads of a group in elements.glsl.
inline constexpr uint32_t kElementGroup = 64;

inline bool can_write_rows(const Tensor& y) {
  return fits_32_bits(y) && y.scale_groups <= kMaxRowScaleGroups;
}

struct VulkanRowsParams {
  Tensor y;
};

inline Status prepare_rows(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const uint32_t rows = context.rows(static_cast<const VulkanRowsParams*>(params)->y);
  dispatches[0].values[0] = rows;
  return spread_groups(context, rows, &dispatches[0]);
}

/// The dispatch alone: `inputs` are at bindings 2, 3, ..., `constants` have the ids 5, 6, ...
inline Status dispatch_row_output(VulkanBindContext& context, const VulkanShader& shader,
                                  const Tensor& y, std::initializer_list<VulkanOperand> inputs,
                                  std::initializer_list<uint32_t> constants) {
  VulkanOperand operands[kMaxVulkanOperands] = {context.out(0)};
  size_t operand_count = 1;
  for (const VulkanOperand& input : inputs) operands[operand_count++] = input;
  uint32_t numbers[kMaxVulkanConstants] = {y.width, y.scale_groups, scale_word(y),
                                           std::bit_cast<uint32_t>(y.static_scale), y.hadamard};
  size_t number_count = 5;
  for (const uint32_t constant : constants) numbers[number_count++] = constant;
  return context.dispatch(shader, std::span(operands, operand_count),
                          std::span(numbers, number_count));
}

/// A step that is one such dispatch.
inline Status bind_row_output(VulkanBindContext& context, const VulkanShader& shader,
                              std::initializer_list<VulkanOperand> inputs,
                              std::initializer_list<uint32_t> constants) {
  const Tensor y = context.output(0);
  if (!can_write_rows(y)) return Status::kOk;
  for (const VulkanOperand& input : inputs) {
    if (!fits_32_bits(context.input(input.index))) return Status::kOk;
  }
  context.params<VulkanRowsParams>() = {y};
  context.prepare(prepare_rows);
  return dispatch_row_output(context, shader, y, inputs, constants);
}

struct VulkanGroupsParams {
  Tensor y;
  uint32_t groups;
};

inline Status prepare_groups(RunContext& context, const void* params,
                             std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const VulkanGroupsParams*>(params);
  const uint64_t rows = uint64_t{context.rows(p.y)} * p.groups;
  dispatches[0].values[0] = static_cast<uint32_t>(rows);
  return spread_groups(context, rows, &dispatches[0]);
}

/// A norm: a step that is one such dispatch, in which each of `groups` parts of a row is a row of its own. That says
/// nothing of int8 rows, whose scales are of all parts together, nor of turned ones: then there may be one part only. Input 1 and on are
/// weights. Constants from 5 on: epsilon, parts of a row, whether there are weights, whether each part has its own.
inline Status bind_norm_output(VulkanBindContext& context, const VulkanShader& shader,
                               std::initializer_list<VulkanOperand> inputs, uint32_t groups,
                               uint32_t epsilon_bits) {
  Tensor y = context.output(0);
  if (!can_write_rows(y) || (groups != 1 && (y.type != DataType::kF32 || y.hadamard != 0)))
    return Status::kOk;
  for (const VulkanOperand& input : inputs) {
    if (!fits_32_bits(context.input(input.index))) return Status::kOk;
  }
  const bool weighted = context.input_count() > 1;
  const bool own = weighted && context.input(1).width == y.width;
  context.params<VulkanGroupsParams>() = {y, groups};
  context.prepare(prepare_groups);
  y.width /= groups;
  return dispatch_row_output(context, shader, y, inputs, {epsilon_bits, groups, weighted, own});
}

/// One thread for each of `count` elements.
inline Status spread_elements(const RunContext& context, uint64_t count, DispatchValues* dispatch) {
  dispatch->values[0] = static_cast<uint32_t>(count);
  return spread_groups(context, ceil_div(count, kElementGroup), dispatch);
}

inline Status prepare_elements(RunContext& context, const void* params,
                               std::span<DispatchValues> dispatches) {
  const Tensor& y = static_cast<const VulkanRowsParams*>(params)->y;
  return spread_elements(context, uint64_t{context.rows(y)} * y.width, &dispatches[0]);
}

/// A step that is one dispatch with a thread for each element of the output. `operands` are all of it.
inline Status bind_elements(VulkanBindContext& context, const VulkanShader& shader,
                            std::initializer_list<VulkanOperand> operands,
                            std::initializer_list<uint32_t> constants) {
  const Tensor y = context.output(0);
  if (!fits_32_bits(y)) return Status::kOk;
  for (const VulkanOperand& operand : operands) {
    const bool input = operand.kind == VulkanOperand::kInput;
    if (input && !fits_32_bits(context.input(operand.index))) return Status::kOk;
  }
  context.params<VulkanRowsParams>() = {y};
  context.prepare(prepare_elements);
  return context.dispatch(shader, operands, constants);
}

}  // namespace oxbow
