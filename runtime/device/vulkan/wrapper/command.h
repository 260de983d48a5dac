#pragma once

// Commands that are recorded once, given to the queue and waited for.

#include "runtime/device/vulkan/wrapper/context.h"

namespace oxbow::vulkan {

class Commands {
 public:
  Status open(Context& context, Error* error);
  /// Also after an open that failed half-way.
  void close();

  /// A new command buffer in recording.
  Status begin(VkCommandBuffer* commands, Error* error);
  Status end(VkCommandBuffer commands, Error* error);
  /// When it returns, nothing runs, whether it failed or not.
  Status submit_and_wait(VkCommandBuffer commands, Error* error);

 private:
  Status submit(VkCommandBuffer commands, Error* error);
  Status wait(Error* error);

  Context* context_ = nullptr;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

/// All writes of one kind before all accesses of the other.
void barrier(const Api& api, VkCommandBuffer commands, VkPipelineStageFlags before,
             VkAccessFlags written, VkPipelineStageFlags after, VkAccessFlags accessed);

}  // namespace oxbow::vulkan
