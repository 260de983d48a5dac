#include "runtime/device/vulkan/wrapper/buffer.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr uint32_t kNone = UINT32_MAX;

/// The first type with all of `flags`, among those of `allowed`.
uint32_t find_type(const Device& device, uint32_t allowed, VkMemoryPropertyFlags flags) {
  for (uint32_t i = 0; i < device.memory.memoryTypeCount; ++i) {
    const bool has = (device.memory.memoryTypes[i].propertyFlags & flags) == flags;
    if (has && (allowed >> i & 1) != 0) return i;
  }
  return kNone;
}

uint32_t choose_type(const Device& device, uint32_t allowed, Place place) {
  const VkMemoryPropertyFlags shared[] = {kLocal | kMapped | kCached, kLocal | kMapped,
                                          kMapped | kCached, kMapped};
  const VkMemoryPropertyFlags local[] = {kLocal, 0};
  uint32_t type = kNone;
  if (place == Place::kShared) {
    for (const VkMemoryPropertyFlags flags : shared) {
      if (type == kNone) type = find_type(device, allowed, flags);
    }
  } else {
    for (const VkMemoryPropertyFlags flags : local) {
      if (type == kNone) type = find_type(device, allowed, flags);
    }
  }
  return type;
}

}  // namespace

bool has_unified_memory(const Device& device) {
  const uint32_t type = find_type(device, UINT32_MAX, kLocal | kMapped);
  const SimulatedDevice* simulated = hooks().simulated;
  if (type == kNone || hooks().staged || (simulated != nullptr && !simulated->unified))
    return false;
  // A graphics card may show the host a small window of its memory only.
  VkDeviceSize largest = 0;
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = device.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) largest = std::max(largest, heap.size);
  }
  return device.memory.memoryHeaps[device.memory.memoryTypes[type].heapIndex].size >= largest;
}

Status Buffer::measure(const Device& device, Place place, size_t wanted, const char* what,
                       uint32_t* type, Error* error) {
  if (wanted > device.max_allocation) {
    return fail(
        error, Status::kOutOfMemory,
        "%s need %zu bytes; the Vulkan device gives at most %llu at once: use the backend cpu",
        what, wanted, static_cast<unsigned long long>(device.max_allocation));
  }
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = wanted;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  OXB_TRY(create(what, error, [&] {
    return device.api().CreateBuffer(device.handle, &info, nullptr, &handle);
  }));
  VkMemoryRequirements needs;
  device.api().GetBufferMemoryRequirements(device.handle, handle, &needs);
  bytes = wanted;
  taken = needs.size;
  *type = choose_type(device, needs.memoryTypeBits, place);
  if (*type == kNone) {
    return fail(error, Status::kNoDevice,
                "the Vulkan device has no memory for %s: use the backend cpu", what);
  }
  const VkDeviceSize heap =
      device.memory.memoryHeaps[device.memory.memoryTypes[*type].heapIndex].size;
  if (needs.size > heap) {
    return fail(error, Status::kOutOfMemory,
                "%s need %llu bytes; the Vulkan device has %llu in all: use the backend cpu", what,
                static_cast<unsigned long long>(needs.size), static_cast<unsigned long long>(heap));
  }
  return Status::kOk;
}

Status Buffer::open(const Device& device, Place place, size_t wanted, const char* what,
                    Error* error) {
  const Api& api = device.api();
  VkMemoryAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  OXB_TRY(measure(device, place, wanted, what, &info.memoryTypeIndex, error));
  info.allocationSize = taken;
  OXB_TRY(create(what, error,
                 [&] { return api.AllocateMemory(device.handle, &info, nullptr, &memory); }));
  counters().bytes += static_cast<int64_t>(taken);
  OXB_TRY(
      call(what, error, [&] { return api.BindBufferMemory(device.handle, handle, memory, 0); }));
  if (place == Place::kDevice) return Status::kOk;
  void* address = nullptr;
  OXB_TRY(call(what, error, [&] {
    return api.MapMemory(device.handle, memory, 0, VK_WHOLE_SIZE, 0, &address);
  }));
  mapped = static_cast<std::byte*>(address);
  std::memset(mapped, 0, bytes);
  return Status::kOk;
}

void Buffer::close(const Device& device) {
  const Api& api = device.api();
  destroy(&handle, [&](VkBuffer object) { api.DestroyBuffer(device.handle, object, nullptr); });
  if (memory != VK_NULL_HANDLE) counters().bytes -= static_cast<int64_t>(taken);
  destroy(&memory, [&](VkDeviceMemory object) { api.FreeMemory(device.handle, object, nullptr); });
  *this = {};
}

}  // namespace oxbow::vulkan
