#pragma once

// What of a device shaders may use. Needs no Vulkan header.

#include <cstdint>

namespace oxbow {

struct VulkanFeatures {
  /// Products of four packed int8 in one instruction.
  bool int_dot = false;
  bool float16 = false;
  /// Not needed: shaders read and write int8 as words of four.
  bool storage8 = false;
  uint32_t subgroup_size = 1;
  uint32_t max_group_threads = 128;
  uint32_t shared_bytes = 16384;
  /// Storage buffers of one shader: the values of a dispatch and its tensors. Four is what the specification promises.
  uint32_t max_bindings = 4;
  /// What the offset of a binding is a multiple of, 256 at most. Tensors lie at multiples of 64: shaders are told the
  /// rest.
  uint32_t binding_alignment = 256;
  /// Of one binding.
  uint32_t max_binding_bytes = uint32_t{1} << 27;
};

}  // namespace oxbow
