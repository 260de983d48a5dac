#include "runtime/device/vulkan/wrapper/device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/device/vulkan/wrapper/result.h"
#include "runtime/device/vulkan/wrapper/step.h"

namespace oxbow::vulkan {
namespace {

constexpr uint32_t kNoQueue = UINT32_MAX;

/// Larger is better; phones have one device, a desktop may have several.
int rank_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 1;
    default:
      return 0;
  }
}

/// Null, or why the device cannot be used.
const char* unfit(const VkPhysicalDeviceProperties& properties, uint32_t queue) {
  const VkPhysicalDeviceLimits& limits = properties.limits;
  if (properties.apiVersion < VK_API_VERSION_1_1) return "it has version 1.0, 1.1 is needed";
  if (queue == kNoQueue) return "it does not compute";
  if (limits.minStorageBufferOffsetAlignment > kMaxBindingAlignment) {
    return "it aligns buffers to more than the 256 bytes that the specification allows";
  }
  return nullptr;
}

uint32_t compute_queue(const Api& api, VkPhysicalDevice device, uint32_t* timestamp_bits) {
  constexpr uint32_t kMost = 16;
  VkQueueFamilyProperties families[kMost];
  uint32_t count = kMost;
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, families);
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    *timestamp_bits = families[i].timestampValidBits;
    return i;
  }
  return kNoQueue;
}

bool has_extension(const Api& api, VkPhysicalDevice device, const char* name) {
  uint32_t count = 0;
  if (api.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) != VK_SUCCESS) {
    return false;
  }
  auto* all =
      static_cast<VkExtensionProperties*>(std::calloc(count, sizeof(VkExtensionProperties)));
  bool found = false;
  if (all != nullptr &&
      api.EnumerateDeviceExtensionProperties(device, nullptr, &count, all) == VK_SUCCESS) {
    for (uint32_t i = 0; i < count; ++i) found |= std::strcmp(all[i].extensionName, name) == 0;
  }
  std::free(all);
  return found;
}

/// A structure may only be asked for when the device knows it.
void probe_features(const Api& api, VkPhysicalDevice device, uint32_t version,
                    VulkanFeatures* features, uint64_t* max_allocation, bool* dot_is_extension) {
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  VkPhysicalDevice8BitStorageFeatures storage8 = {};
  storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
  VkPhysicalDeviceShaderFloat16Int8Features float16 = {};
  float16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  VkPhysicalDeviceFeatures2 all = {};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  *dot_is_extension = version < VK_API_VERSION_1_3;
  if (!*dot_is_extension ||
      has_extension(api, device, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    dot.pNext = all.pNext;
    all.pNext = &dot;
  }
  const bool is_1_2 = version >= VK_API_VERSION_1_2;
  if (is_1_2 || has_extension(api, device, VK_KHR_8BIT_STORAGE_EXTENSION_NAME)) {
    storage8.pNext = all.pNext;
    all.pNext = &storage8;
  }
  if (is_1_2 || has_extension(api, device, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME)) {
    float16.pNext = all.pNext;
    all.pNext = &float16;
  }
  api.GetPhysicalDeviceFeatures2(device, &all);

  VkPhysicalDeviceSubgroupProperties subgroup = {};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &subgroup;
  VkPhysicalDeviceMaintenance3Properties sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  subgroup.pNext = &sizes;
  api.GetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceLimits& limits = properties.properties.limits;

  features->int_dot = dot.shaderIntegerDotProduct != 0;
  features->float16 = float16.shaderFloat16 != 0;
  features->storage8 = storage8.storageBuffer8BitAccess != 0;
  features->subgroup_size = subgroup.subgroupSize;
  features->max_group_threads = limits.maxComputeWorkGroupInvocations;
  features->shared_bytes = limits.maxComputeSharedMemorySize;
  features->max_bindings = limits.maxPerStageDescriptorStorageBuffers;
  features->binding_alignment = static_cast<uint32_t>(limits.minStorageBufferOffsetAlignment);
  features->max_binding_bytes = limits.maxStorageBufferRange;
  *max_allocation = sizes.maxMemoryAllocationSize;
}

/// The device with no more than what tests leave of it.
void simulate(const Hooks& hooks, VulkanFeatures* features, uint64_t* max_allocation) {
  const auto cut = [](auto most, auto* limit) {
    if (most != 0) *limit = std::min(*limit, most);
  };
  if (const SimulatedDevice* device = hooks.simulated; device != nullptr) {
    const VulkanFeatures& less = device->features;
    features->int_dot &= less.int_dot;
    features->float16 &= less.float16;
    features->storage8 &= less.storage8;
    features->subgroup_size = less.subgroup_size;
    cut(less.max_group_threads, &features->max_group_threads);
    cut(less.shared_bytes, &features->shared_bytes);
    cut(less.max_bindings, &features->max_bindings);
    cut(less.max_binding_bytes, &features->max_binding_bytes);
    features->binding_alignment = std::max(features->binding_alignment, less.binding_alignment);
    cut(device->max_allocation, max_allocation);
  }
  features->int_dot &= !hooks.no_int_dot;
  features->storage8 &= !hooks.no_storage8;
  features->binding_alignment = std::max(features->binding_alignment, hooks.binding_alignment);
  cut(hooks.max_binding_bytes, &features->max_binding_bytes);
  cut(hooks.max_allocation, max_allocation);
}

}  // namespace

Status Device::open(Error* error) {
  OXB_TRY(instance.open(error));
  constexpr uint32_t kMost = 16;
  VkPhysicalDevice devices[kMost];
  uint32_t count = kMost;
  OXB_TRY(call("the list of devices", error, [&] {
    const VkResult result = api().EnumeratePhysicalDevices(instance.handle, &count, devices);
    return result == VK_INCOMPLETE ? VK_SUCCESS : result;
  }));
  if (hooks().no_device) count = 0;
  int best = -1;
  const char* why = "there is none";
  uint32_t timestamp_bits = 0;
  for (uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceProperties found;
    api().GetPhysicalDeviceProperties(devices[i], &found);
    found.limits.minStorageBufferOffsetAlignment = std::max<VkDeviceSize>(
        found.limits.minStorageBufferOffsetAlignment, hooks().binding_alignment);
    if (hooks().simulated != nullptr) {
      found.apiVersion = std::min(found.apiVersion, hooks().simulated->api_version);
    }
    uint32_t bits = 0;
    const uint32_t family = compute_queue(api(), devices[i], &bits);
    if (const char* reason = unfit(found, family); reason != nullptr) {
      if (best < 0) why = reason;
      continue;
    }
    if (rank_of(found.deviceType) <= best) continue;
    best = rank_of(found.deviceType);
    physical = devices[i];
    queue_family = family;
    properties = found;
    timestamp_bits = bits;
  }
  if (best < 0) {
    return fail(error, Status::kNoDevice, "no Vulkan device can be used: %s; use the backend cpu",
                why);
  }
  bool dot_is_extension = false;
  // What the instance does not know must not be asked of the device.
  const uint32_t version = std::min(properties.apiVersion, instance.version);
  probe_features(api(), physical, version, &features, &max_allocation, &dot_is_extension);
  simulate(hooks(), &features, &max_allocation);
  if (hooks().simulated != nullptr && !hooks().simulated->timestamps) timestamp_bits = 0;
  timestamp_period = timestamp_bits == 0 ? 0.0 : double{properties.limits.timestampPeriod};
  timestamp_mask = timestamp_bits >= 64 ? UINT64_MAX : (uint64_t{1} << timestamp_bits) - 1;
  api().GetPhysicalDeviceMemoryProperties(physical, &memory);

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue_info = {};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = queue_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  dot.shaderIntegerDotProduct = VK_TRUE;
  const char* const extensions[] = {VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME};
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  if (features.int_dot) {
    info.pNext = &dot;
    if (dot_is_extension) {
      info.enabledExtensionCount = 1;
      info.ppEnabledExtensionNames = extensions;
    }
  }
  OXB_TRY(create("a device", error,
                 [&] { return api().CreateDevice(physical, &info, nullptr, &handle); }));
  OXB_TRY(find_device_functions(handle, &instance.api, error));
  api().GetDeviceQueue(handle, queue_family, 0, &queue);
  return Status::kOk;
}

void Device::close() {
  destroy(&handle, [&](VkDevice object) {
    if (api().DestroyDevice != nullptr) api().DestroyDevice(object, nullptr);
  });
  instance.close();
  *this = {};
}

}  // namespace oxbow::vulkan
