#pragma once

// One step as data: which shaders run over which bytes. Needs no Vulkan header.

#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

/// A compiled shader, embedded by the build under the name of its file: x.comp is shader_x.
struct VulkanShader {
  const char* name;
  std::span<const uint32_t> code;
  /// The same, compiled with OXB_INT_DOT for devices that have packed integer dot products; may be empty.
  std::span<const uint32_t> int_dot_code;
};

/// What the specification lets a device ask for at most.
inline constexpr size_t kMaxBindingAlignment = 256;

/// What a shader reads at binding 0, and the device as the size of an indirect dispatch.
struct DispatchValues {
  /// Zero in any of them: nothing runs. At most kMaxVulkanGroups each.
  uint32_t groups[3];
  /// Two bits for each operand: how many times kTensorAlignment it begins behind what is bound. The program's: prepare
  /// leaves it alone.
  uint32_t rests;
  uint32_t values[28];
  /// Bindings begin at multiples of 256 on some devices.
  uint32_t unused[32];
};
static_assert(sizeof(DispatchValues) == kMaxBindingAlignment);

inline constexpr uint32_t kMaxVulkanGroups = 65535;
/// Tensors of one dispatch, at bindings 1, 2, ...
inline constexpr size_t kMaxVulkanOperands = 15;
/// Specialisation constants of one dispatch, with the ids 0, 1, ...
inline constexpr size_t kMaxVulkanConstants = 32;

namespace vulkan {

enum class Region : uint8_t { kWeights, kStates, kActivations, kOutput, kScratch };

struct Range {
  Region region = Region::kActivations;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Dispatch {
  const VulkanShader* shader = nullptr;
  /// Its form with packed integer dot products.
  bool int_dot = false;
  /// Has groups in runs of many rows only: a run in which no such dispatch has any takes commands without them.
  bool for_many_rows = false;
  uint32_t operand_count = 0;
  uint32_t constant_count = 0;
  Range operands[kMaxVulkanOperands] = {};
  uint32_t constants[kMaxVulkanConstants] = {};
};

/// Without dispatches the step runs on the CPU; then the program must know what it touches.
struct Step {
  uint32_t first_dispatch = 0;
  uint32_t dispatch_count = 0;
  uint32_t first_touched = 0;
  uint32_t touched_count = 0;
  /// The host has something to do before the next step.
  bool ends_segment = false;
};

/// What a step on the CPU reads or writes.
struct Touched {
  Range range;
  bool written = false;
};

}  // namespace vulkan
}  // namespace oxbow
