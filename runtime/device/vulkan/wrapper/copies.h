#pragma once

// Bytes to copy between a buffer and its mirror, as intervals that neither touch nor overlap: tensors
// share memory when their lives do not meet, and two copies to one place would need an order.

#include <cstdint>

#include "runtime/device/vulkan/wrapper/array.h"
#include "runtime/device/vulkan/wrapper/command.h"
#include "runtime/device/vulkan/wrapper/memory.h"

namespace oxbow::vulkan {

class Copies {
 public:
  /// Weights and scratch have no mirror and are passed over. False: no memory.
  [[nodiscard]] bool add(const Memory& memory, const Range& range);
  bool empty() const { return states_.size() == 0 && activations_.size() == 0; }
  void record(const Api& api, const Memory& memory, bool to_device, VkCommandBuffer commands) const;

 private:
  static bool merge(Array<VkBufferCopy>& list, uint64_t begin, uint64_t end);

  Array<VkBufferCopy> states_, activations_;
};

}  // namespace oxbow::vulkan
