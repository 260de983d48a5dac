#include "runtime/device/vulkan/wrapper/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/base/hash.h"
#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {

namespace {

/// In front of the driver's bytes.
struct CacheHeader {
  char magic[8];
  uint64_t hash;
};

constexpr char kCacheMagic[8] = {'o', 'x', 'b', 'p', 'i', 'p', 'e', '1'};
/// VkPipelineCacheHeaderVersionOne, which a device's functions may not be given less than.
constexpr size_t kDriverHeaderBytes = 16 + VK_UUID_SIZE;

/// The driver's part of stored bytes; empty when they are not what write made on this device.
std::span<const std::byte> driver_part(const VkPhysicalDeviceProperties& properties,
                                       std::span<const std::byte> blob) {
  CacheHeader header;
  if (blob.size() < sizeof(header) + kDriverHeaderBytes) return {};
  std::memcpy(&header, blob.data(), sizeof(header));
  const std::span<const std::byte> part = blob.subspan(sizeof(header));
  if (std::memcmp(header.magic, kCacheMagic, sizeof(kCacheMagic)) != 0) return {};
  if (header.hash != hash_bytes(part.data(), part.size())) return {};
  uint32_t fields[4];
  std::memcpy(fields, part.data(), sizeof(fields));
  const bool same =
      fields[1] == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && fields[2] == properties.vendorID &&
      fields[3] == properties.deviceID &&
      std::memcmp(part.data() + sizeof(fields), properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
  return same ? part : std::span<const std::byte>();
}

}  // namespace

Status PipelineCache::open(const Device& device, Error* error) {
  VkPipelineCacheCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  return create("a pipeline cache", error, [&] {
    return device.api().CreatePipelineCache(device.handle, &info, nullptr, &handle_);
  });
}

void PipelineCache::close(const Device& device) {
  destroy(&handle_, [&](VkPipelineCache object) {
    device.api().DestroyPipelineCache(device.handle, object, nullptr);
  });
}

Status PipelineCache::write(const Device& device, std::span<std::byte> blob, size_t* bytes,
                            Error* error) {
  const auto get = [&](size_t* size, void* data) {
    return call("the pipeline cache", error, [&] {
      return device.api().GetPipelineCacheData(device.handle, handle_, size, data);
    });
  };
  size_t driver_bytes = 0;
  OXB_TRY(get(&driver_bytes, nullptr));
  *bytes = sizeof(CacheHeader) + driver_bytes;
  if (blob.data() == nullptr) return Status::kOk;
  if (blob.size() < *bytes) {
    return fail(error, Status::kBufferTooSmall, "the buffer has %zu bytes; the cache needs %zu",
                blob.size(), *bytes);
  }
  std::byte* const part = blob.data() + sizeof(CacheHeader);
  OXB_TRY(get(&driver_bytes, part));
  *bytes = sizeof(CacheHeader) + driver_bytes;
  CacheHeader header;
  std::memcpy(header.magic, kCacheMagic, sizeof(kCacheMagic));
  header.hash = hash_bytes(part, driver_bytes);
  std::memcpy(blob.data(), &header, sizeof(header));
  return Status::kOk;
}

Status PipelineCache::read(const Device& device, std::span<const std::byte> blob, Error* error) {
  const std::span<const std::byte> part = driver_part(device.properties, blob);
  if (part.empty()) return Status::kOk;
  VkPipelineCacheCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = part.size();
  info.pInitialData = part.data();
  VkPipelineCache given = VK_NULL_HANDLE;
  OXB_TRY(create("a pipeline cache", error, [&] {
    return device.api().CreatePipelineCache(device.handle, &info, nullptr, &given);
  }));
  const Status status = call("the pipeline cache", error, [&] {
    return device.api().MergePipelineCaches(device.handle, handle_, 1, &given);
  });
  destroy(&given, [&](VkPipelineCache object) {
    device.api().DestroyPipelineCache(device.handle, object, nullptr);
  });
  return status;
}

Status Pipelines::make_layouts(const Device& device, uint32_t bindings, Error* error) {
  Layouts& layouts = layouts_[bindings];
  if (layouts.pipeline != VK_NULL_HANDLE) return Status::kOk;
  VkDescriptorSetLayoutBinding list[kMaxBindings] = {};
  for (uint32_t i = 0; i < bindings; ++i) {
    list[i].binding = i;
    list[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    list[i].descriptorCount = 1;
    list[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set_info = {};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = bindings;
  set_info.pBindings = list;
  if (layouts.set == VK_NULL_HANDLE) {  // Not if only the second half failed the last time.
    OXB_TRY(create("a descriptor layout", error, [&] {
      return device.api().CreateDescriptorSetLayout(device.handle, &set_info, nullptr,
                                                    &layouts.set);
    }));
  }
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &layouts.set;
  return create("a pipeline layout", error, [&] {
    return device.api().CreatePipelineLayout(device.handle, &info, nullptr, &layouts.pipeline);
  });
}

Status Pipelines::find_or_make(const Device& device, VkPipelineCache cache, const PipelineKey& key,
                               Pipeline* pipeline, Error* error) {
  const auto* found =
      std::find_if(made_.begin(), made_.end(), [&](const Made& made) { return made.key == key; });
  if (found == made_.end()) {
    OXB_TRY(make(device, cache, key, error));
    found = made_.end() - 1;
  }
  const Layouts& layouts = layouts_[key.bindings];
  *pipeline = {found->handle, layouts.pipeline, layouts.set};
  return Status::kOk;
}

Status Pipelines::make(const Device& device, VkPipelineCache cache, const PipelineKey& key,
                       Error* error) {
  // A model has some dozens.
  if (made_.size() >= kMostPipelines) {
    return fail(error, Status::kOutOfMemory,
                "no room for more than %zu compiled shaders: use the backend cpu", kMostPipelines);
  }
  OXB_TRY(make_layouts(device, key.bindings, error));
  const Api& api = device.api();
  VkShaderModuleCreateInfo module_info = {};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = key.code_words * sizeof(uint32_t);
  module_info.pCode = key.code;
  VkShaderModule module = VK_NULL_HANDLE;
  OXB_TRY(create(key.name, error, [&] {
    return api.CreateShaderModule(device.handle, &module_info, nullptr, &module);
  }));

  // The ops' constants, and has_rests of ops/common/vulkan/common.glsl behind the last there can be.
  VkSpecializationMapEntry entries[kMaxConstants + 1];
  uint32_t values[kMaxConstants + 1];
  std::copy_n(key.constants, key.constant_count, values);
  values[key.constant_count] = key.has_rests ? VK_TRUE : VK_FALSE;
  const uint32_t count = key.constant_count + 1;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = i < key.constant_count ? i : static_cast<uint32_t>(kMaxConstants);
    entries[i] = {id, static_cast<uint32_t>(i * sizeof(uint32_t)), sizeof(uint32_t)};
  }
  const VkSpecializationInfo constants = {count, entries, count * sizeof(uint32_t), values};
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layouts_[key.bindings].pipeline;
  Made made = {key, VK_NULL_HANDLE};
  Status status = create(key.name, error, [&] {
    return api.CreateComputePipelines(device.handle, cache, 1, &info, nullptr, &made.handle);
  });
  destroy(&module,
          [&](VkShaderModule object) { api.DestroyShaderModule(device.handle, object, nullptr); });
  counters().int_dot_pipelines += key.int_dot && status == Status::kOk ? 1 : 0;
  if (status == Status::kOk && !made_.push(made)) {
    destroy(&made.handle,
            [&](VkPipeline object) { api.DestroyPipeline(device.handle, object, nullptr); });
    status = fail(error, Status::kOutOfMemory, "no memory for the pipeline %s", key.name);
  }
  return status;
}

void Pipelines::close(const Device& device) {
  const Api& api = device.api();
  for (Made& made : made_) {
    destroy(&made.handle,
            [&](VkPipeline object) { api.DestroyPipeline(device.handle, object, nullptr); });
  }
  for (Layouts& layouts : layouts_) {
    destroy(&layouts.pipeline, [&](VkPipelineLayout object) {
      api.DestroyPipelineLayout(device.handle, object, nullptr);
    });
    destroy(&layouts.set, [&](VkDescriptorSetLayout object) {
      api.DestroyDescriptorSetLayout(device.handle, object, nullptr);
    });
  }
}

}  // namespace oxbow::vulkan
