#pragma once

// What an op tells the Vulkan backend about one step. Needs no Vulkan header: the op names shaders,
// tensors and numbers; the runtime makes pipelines, descriptors and commands of them, once.
//
// bind_x_vulkan  runs after the op's bind accepted the step, and like it twice: to count and to place. It adds one or
//                more dispatches, which run in this order, or none: then the step runs on the CPU.
// prepare        runs on the host in every run, in the order of the steps. It does what the CPU's run does to symbols
//                and rings, and fills the DispatchValues of each dispatch: group counts and numbers that differ
//                between runs. It must not look at tensor data.
// finish         optional: reads results that only the GPU knows, such as row counts and errors, from the
//                DispatchValues that shaders wrote. It runs on the host when the step's dispatches are done, and ends
//                the submission: later steps are prepared and submitted after it.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

#include "runtime/device/vulkan/wrapper/features.h"
#include "runtime/device/vulkan/wrapper/step.h"
#include "runtime/op.h"

namespace oxbow {

/// Declares the shader of ops/<op>/<name>.comp.
#define OXB_SHADER(name) extern const VulkanShader shader_##name

/// One tensor of a dispatch: all its bytes, the scales behind the elements.
struct VulkanOperand {
  enum Kind : uint8_t { kInput, kOutput, kScratch };
  Kind kind = kInput;
  /// In the step's list.
  uint32_t index = 0;
  /// Scratch only: a part of what request_scratch asked for, from a multiple of 64 on.
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

using VulkanPrepare = Status (*)(RunContext& context, const void* params,
                                 std::span<DispatchValues> dispatches);

using VulkanFinish = Status (*)(RunContext& context, const void* params,
                                std::span<const DispatchValues> dispatches);

class VulkanBindContext : public DeviceBindContext {
 public:
  virtual const schema::Step& step() const = 0;
  virtual size_t input_count() const = 0;
  /// Shapes; their data is null.
  virtual Tensor input(size_t index) const = 0;
  virtual Tensor output(size_t index) const = 0;
  virtual uint32_t ring_capacity(int32_t ring) const = 0;
  virtual const VulkanFeatures& features() const = 0;

  static VulkanOperand in(size_t index) {
    return {VulkanOperand::kInput, static_cast<uint32_t>(index)};
  }
  static VulkanOperand out(size_t index) {
    return {VulkanOperand::kOutput, static_cast<uint32_t>(index)};
  }
  /// What dispatches of one step hand to each other; nothing of it outlives the step.
  static VulkanOperand scratch(uint64_t offset, uint64_t bytes) {
    return {VulkanOperand::kScratch, 0, offset, bytes};
  }
  virtual void request_scratch(uint64_t bytes) = 0;

  /// One dispatch. Operand i is at binding i + 1, constant i has id i. It waits for earlier ones, of this and other
  /// steps, that share bytes with it which one of the two may write.
  virtual Status dispatch(const VulkanShader& shader, std::span<const VulkanOperand> operands,
                          std::span<const uint32_t> constants) = 0;
  Status dispatch(const VulkanShader& shader, std::initializer_list<VulkanOperand> operands,
                  std::initializer_list<uint32_t> constants) {
    return dispatch(shader, std::span(operands.begin(), operands.size()),
                    std::span(constants.begin(), constants.size()));
  }
  /// Of the last dispatch: prepare gives it groups in runs of many rows only. Other runs then take commands without it.
  virtual void for_many_rows() = 0;
  virtual void prepare(VulkanPrepare function) = 0;
  virtual void finish(VulkanFinish function) = 0;
  /// By how much float results may differ from the CPU's: |a - b| <= bound * max(1, |b|). Without it the
  /// bits are the same, and tests hold the op to that.
  virtual void allow_error(float bound) = 0;

  /// Numbers for prepare, living as long as the session.
  template <typename Params>
  Params& params() {
    static_assert(sizeof(Params) <= kMaxParamsBytes &&
                  alignof(Params) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_destructible_v<Params>);
    return *new (allocate_params(sizeof(Params))) Params();
  }

 protected:
  ~VulkanBindContext() = default;
  /// Never null: a place to be thrown away when memory ran out, and the bind then fails.
  virtual void* allocate_params(size_t bytes) = 0;
};

/// Groups along x and then along y, so that no dimension is too large. The shader gets the number of its
/// group back with group_index() of ops/common/vulkan/common.glsl.
inline Status spread_groups(const RunContext& context, uint64_t groups, DispatchValues* dispatch) {
  const uint64_t rows = ceil_div(groups, kMaxVulkanGroups);
  if (rows > kMaxVulkanGroups) {
    return fail(context.error, Status::kInternal, "a step is too large for a Vulkan device");
  }
  dispatch->groups[0] = static_cast<uint32_t>(rows <= 1 ? groups : kMaxVulkanGroups);
  dispatch->groups[1] = static_cast<uint32_t>(rows);
  dispatch->groups[2] = 1;
  return Status::kOk;
}

/// Shaders index elements and words with 32 bits; a step with a larger tensor is left to the CPU.
inline bool fits_32_bits(const Tensor& tensor) {
  uint64_t bytes = 0;
  return tensor_bytes(tensor.type, tensor.layout, tensor.rows, tensor.width, tensor.scale_groups,
                      &bytes) &&
         bytes <= UINT32_MAX;
}

/// Where the scales begin in the tensor's binding, in words.
inline uint32_t scale_word(const Tensor& tensor) {
  return static_cast<uint32_t>(
      element_bytes(tensor.type, tensor.layout, tensor.rows, tensor.width) / 4);
}

}  // namespace oxbow
