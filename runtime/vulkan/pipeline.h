#pragma once

// Compute pipelines of a session: one for each shader and set of constants, however many steps use it.

#include <cstdint>
#include <mutex>
#include <span>

#include "runtime/vulkan/array.h"
#include "runtime/vulkan/device.h"

namespace oxbow::vulkan {

inline constexpr size_t kMaxConstants = 32;

/// What a pipeline is made of. All bindings are storage buffers, 0 to bindings - 1.
struct PipelineKey {
  const char* name = "";
  const uint32_t* code = nullptr;
  size_t code_words = 0;
  uint32_t bindings = 0;
  uint32_t constant_count = 0;
  uint32_t constants[kMaxConstants] = {};

  bool operator==(const PipelineKey&) const = default;
};

/// Compiled pipelines as the driver keeps them, shared by the sessions of a device; an application may
/// store them and give them back later.
class PipelineCache {
 public:
  Status open(const Device& device, Error* error);
  void close(const Device& device);
  VkPipelineCache handle() const { return handle_; }
  /// Bytes written; with a null place, bytes needed. Other threads must not make pipelines meanwhile.
  Status write(const Device& device, std::span<std::byte> blob, size_t* bytes, Error* error);
  /// Bytes of another device or driver are ignored, as Vulkan promises.
  Status read(const Device& device, std::span<const std::byte> blob, Error* error);

 private:
  VkPipelineCache handle_ = VK_NULL_HANDLE;
};

class Pipelines {
 public:
  /// The pipeline's index.
  Status find_or_make(const Device& device, VkPipelineCache cache, const PipelineKey& key,
                      size_t* index, Error* error);
  void close(const Device& device);

  size_t size() const { return made_.size(); }
  VkPipeline pipeline(size_t index) const { return made_[index].pipeline; }
  VkPipelineLayout layout(size_t index) const {
    return layouts_[made_[index].key.bindings].pipeline;
  }
  VkDescriptorSetLayout set_layout(size_t index) const {
    return layouts_[made_[index].key.bindings].set;
  }

 private:
  struct Made {
    PipelineKey key;
    VkPipeline pipeline;
  };
  struct Layouts {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };
  Status make_layouts(const Device& device, uint32_t bindings, Error* error);

  Array<Made> made_;
  /// By the number of bindings.
  Layouts layouts_[kMaxBindings + 1];
};

}  // namespace oxbow::vulkan
