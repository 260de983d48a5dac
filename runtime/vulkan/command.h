#pragma once

// Commands that are recorded once, given to the queue and waited for.

#include "runtime/vulkan/context.h"

namespace oxbow::vulkan {

class Commands {
 public:
  Status open(Context& context, Error* error);
  /// Waits for what may still run. Also after an open that failed half-way.
  void close();

  /// A new command buffer in recording.
  Status begin(VkCommandBuffer* commands, Error* error);
  Status end(VkCommandBuffer commands, Error* error);
  Status submit_and_wait(VkCommandBuffer commands, Error* error);

 private:
  Context* context_ = nullptr;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  /// Work was given and not waited for, because something failed.
  bool running_ = false;
};

/// All writes of one kind before all accesses of the other.
void barrier(const Api& api, VkCommandBuffer commands, VkPipelineStageFlags before,
             VkAccessFlags written, VkPipelineStageFlags after, VkAccessFlags accessed);

}  // namespace oxbow::vulkan
