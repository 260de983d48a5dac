#pragma once

// What the ops said about their steps, collected: the list a vulkan::Program is made of. Needs no Vulkan
// header.

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "runtime/device/vulkan/wrapper/array.h"
#include "runtime/device/vulkan/wrapper/proof.h"
#include "runtime/device/vulkan/wrapper/step.h"

namespace oxbow {

struct VulkanStepList {
  /// What prepare gets, in a chain since it must not move.
  struct Block {
    Block* next;
    alignas(std::max_align_t) std::byte params[1];
  };
  struct Host {
    VulkanPrepare prepare = nullptr;
    /// Null: there is nothing to do.
    VulkanFinish finish = nullptr;
    const void* params = nullptr;
    /// See VulkanBindContext::allow_error.
    float allowed_error = 0.0f;
    bool writes_output = false;
    /// Not null: why the step is the CPU's although there is a shader, and which.
    const char* why_not = nullptr;
    /// The shader of why_not, or one whose form with packed dot products is wrong on this device.
    const char* shader = nullptr;
  };

  VulkanStepList() = default;
  VulkanStepList(const VulkanStepList&) = delete;
  VulkanStepList& operator=(const VulkanStepList&) = delete;
  ~VulkanStepList() { clear(); }
  void clear();

  /// By step.
  vulkan::Array<vulkan::Step> steps;
  vulkan::Array<Host> host;
  vulkan::Array<vulkan::Dispatch> dispatches;
  vulkan::Array<vulkan::Touched> touched;
  Block* blocks = nullptr;
  uint64_t scratch_bytes = 0;
};

/// Which form of a shader is right on the device: vulkan::Proofs::choose.
struct ShaderJudge {
  void* self = nullptr;
  Status (*choose)(void* self, const VulkanShader& shader, ShaderForm* form,
                   Error* error) = nullptr;
};

/// Appends the step. An op without a function for Vulkan, or one that adds no dispatch, makes it a step of the CPU.
Status add_vulkan_step(const DeviceStep& step, const VulkanFeatures& features,
                       const ShaderJudge& judge, VulkanStepList* list, Error* error);

}  // namespace oxbow
