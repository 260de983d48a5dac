#pragma once

// Vulkan's functions, found at run time. The library is opened with dlopen: nothing here links to it.

#define VK_NO_PROTOTYPES 1
#include <vulkan/vulkan_core.h>

#include "runtime/base/status.h"

namespace oxbow::vulkan {

#define OXB_VULKAN_GLOBAL(X)          \
  X(EnumerateInstanceVersion)         \
  X(EnumerateInstanceLayerProperties) \
  X(CreateInstance)

#define OXB_VULKAN_INSTANCE(X)              \
  X(DestroyInstance)                        \
  X(EnumeratePhysicalDevices)               \
  X(EnumerateDeviceExtensionProperties)     \
  X(GetPhysicalDeviceProperties)            \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceMemoryProperties)      \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(CreateDevice)                           \
  X(GetDeviceProcAddr)

#define OXB_VULKAN_DEVICE(X)     \
  X(DestroyDevice)               \
  X(DeviceWaitIdle)              \
  X(GetDeviceQueue)              \
  X(CreateBuffer)                \
  X(DestroyBuffer)               \
  X(GetBufferMemoryRequirements) \
  X(AllocateMemory)              \
  X(FreeMemory)                  \
  X(BindBufferMemory)            \
  X(MapMemory)                   \
  X(CreateShaderModule)          \
  X(DestroyShaderModule)         \
  X(CreateDescriptorSetLayout)   \
  X(DestroyDescriptorSetLayout)  \
  X(CreatePipelineLayout)        \
  X(DestroyPipelineLayout)       \
  X(CreatePipelineCache)         \
  X(DestroyPipelineCache)        \
  X(GetPipelineCacheData)        \
  X(MergePipelineCaches)         \
  X(CreateComputePipelines)      \
  X(DestroyPipeline)             \
  X(CreateDescriptorPool)        \
  X(DestroyDescriptorPool)       \
  X(AllocateDescriptorSets)      \
  X(UpdateDescriptorSets)        \
  X(CreateCommandPool)           \
  X(DestroyCommandPool)          \
  X(AllocateCommandBuffers)      \
  X(BeginCommandBuffer)          \
  X(EndCommandBuffer)            \
  X(CmdBindPipeline)             \
  X(CmdBindDescriptorSets)       \
  X(CmdDispatchIndirect)         \
  X(CmdPipelineBarrier)          \
  X(CmdCopyBuffer)               \
  X(CmdResetQueryPool)           \
  X(CmdWriteTimestamp)           \
  X(CreateQueryPool)             \
  X(DestroyQueryPool)            \
  X(GetQueryPoolResults)         \
  X(CreateFence)                 \
  X(DestroyFence)                \
  X(ResetFences)                 \
  X(WaitForFences)               \
  X(QueueSubmit)

struct Api {
  void* library = nullptr;
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define X(name) PFN_vk##name name = nullptr;
  OXB_VULKAN_GLOBAL(X)
  OXB_VULKAN_INSTANCE(X)
  OXB_VULKAN_DEVICE(X)
#undef X
  /// Of the debug extension; null without it.
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;
};

/// Opens the loader and finds what needs no instance.
Status open_loader(Api* api, Error* error);
void close_loader(Api* api);
Status find_instance_functions(VkInstance instance, Api* api, Error* error);
Status find_device_functions(VkDevice device, Api* api, Error* error);

}  // namespace oxbow::vulkan
