#pragma once

// Compute pipelines of a device: one for each shader and set of constants, however many steps and
// sessions use it. They live as long as the device is open: compiling takes seconds on some.

#include <cstdint>
#include <span>

#include "runtime/device/vulkan/wrapper/array.h"
#include "runtime/device/vulkan/wrapper/device.h"
#include "runtime/device/vulkan/wrapper/proof.h"

namespace oxbow::vulkan {

inline constexpr size_t kMaxConstants = 32;
/// Of a device. A file that wants more would keep the compiler busy for hours.
inline constexpr size_t kMostPipelines = 2048;

/// What a pipeline is made of. All bindings are storage buffers, 0 to bindings - 1.
struct PipelineKey {
  const char* name = "";
  const uint32_t* code = nullptr;
  size_t code_words = 0;
  uint32_t bindings = 0;
  /// The code has packed integer dot products.
  bool int_dot = false;
  /// Some tensor begins behind what is bound: see DispatchValues::rests.
  bool has_rests = false;
  uint32_t constant_count = 0;
  uint32_t constants[kMaxConstants] = {};

  bool operator==(const PipelineKey&) const = default;
};

/// Compiled pipelines as the driver keeps them, and which shaders were proved right; shared by the sessions of a device. An application may
/// store them and give them back later. Drivers trust what they are given, so the bytes carry a checksum.
class PipelineCache {
 public:
  Status open(const Device& device, Error* error);
  void close(const Device& device);
  VkPipelineCache handle() const { return handle_; }
  /// Bytes written; with a null place, bytes needed. Other threads must not make pipelines meanwhile.
  Status write(const Device& device, Proofs& proofs, std::span<std::byte> blob, size_t* bytes,
               Error* error);
  /// Bytes that are damaged, or of another device or driver, are ignored.
  Status read(const Device& device, std::span<const std::byte> blob, Proofs& proofs, Error* error);

 private:
  VkPipelineCache handle_ = VK_NULL_HANDLE;
};

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  /// See written_bindings().
  uint32_t written = 0;
};

class Pipelines {
 public:
  /// Not by two threads at once.
  Status find_or_make(const Device& device, VkPipelineCache cache, const PipelineKey& key,
                      Pipeline* pipeline, Error* error);
  void close(const Device& device);

 private:
  struct Made {
    PipelineKey key;
    VkPipeline handle;
    uint32_t written;
  };
  struct Layouts {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };
  Status make(const Device& device, VkPipelineCache cache, const PipelineKey& key, Error* error);
  Status make_layouts(const Device& device, uint32_t bindings, Error* error);

  Array<Made> made_;
  /// By the number of bindings.
  Layouts layouts_[kMaxBindings + 1];
};

}  // namespace oxbow::vulkan
