#include "runtime/device/vulkan/wrapper/command.h"

#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {

Status Commands::open(Context& context, Error* error) {
  context_ = &context;
  const Device& device = context.device;
  VkCommandPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = device.queue_family;
  OXB_TRY(create("a command pool", error, [&] {
    return device.api().CreateCommandPool(device.handle, &pool_info, nullptr, &pool_);
  }));
  VkFenceCreateInfo fence_info = {};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  return create("a fence", error, [&] {
    return device.api().CreateFence(device.handle, &fence_info, nullptr, &fence_);
  });
}

void Commands::close() {
  if (context_ == nullptr) return;
  const Device& device = context_->device;
  destroy(&fence_,
          [&](VkFence object) { device.api().DestroyFence(device.handle, object, nullptr); });
  destroy(&pool_, [&](VkCommandPool object) {
    device.api().DestroyCommandPool(device.handle, object, nullptr);
  });
}

Status Commands::begin(VkCommandBuffer* commands, Error* error) {
  const Device& device = context_->device;
  VkCommandBufferAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  OXB_TRY(call("commands", error, [&] {
    return device.api().AllocateCommandBuffers(device.handle, &info, commands);
  }));
  VkCommandBufferBeginInfo begin_info = {};
  begin_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  return call("commands", error,
              [&] { return device.api().BeginCommandBuffer(*commands, &begin_info); });
}

Status Commands::end(VkCommandBuffer commands, Error* error) {
  return call("commands", error, [&] { return context_->device.api().EndCommandBuffer(commands); });
}

Status Commands::submit(VkCommandBuffer commands, Error* error) {
  const Device& device = context_->device;
  const Api& api = device.api();
  if (context_->lost) return failed(VK_ERROR_DEVICE_LOST, "an earlier run", error);
  OXB_TRY(call("a fence", error, [&] { return api.ResetFences(device.handle, 1, &fence_); }));
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const std::lock_guard lock(context_->queue_mutex);
  return call("a submission", error,
              [&] { return api.QueueSubmit(device.queue, 1, &info, fence_); });
}

Status Commands::wait(Error* error) {
  const Device& device = context_->device;
  const Status status = call("waiting for the device", error, [&] {
    return device.api().WaitForFences(device.handle, 1, &fence_, VK_TRUE, UINT64_MAX);
  });
  if (status != Status::kOk) {
    // Lost or not: nothing runs afterwards, and the caller may write where it did.
    const std::lock_guard lock(context_->queue_mutex);
    (void)device.api().DeviceWaitIdle(device.handle);
  }
  return status;
}

Status Commands::submit_and_wait(VkCommandBuffer commands, Error* error) {
  Status status = submit(commands, error);
  if (status == Status::kOk) status = wait(error);
  if (status == Status::kDeviceLost) context_->lost = true;
  return status;
}

void barrier(const Api& api, VkCommandBuffer commands, VkPipelineStageFlags before,
             VkAccessFlags written, VkPipelineStageFlags after, VkAccessFlags accessed) {
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = written;
  memory.dstAccessMask = accessed;
  api.CmdPipelineBarrier(commands, before, after, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace oxbow::vulkan
