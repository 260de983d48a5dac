#include "runtime/device/vulkan/wrapper/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/base/hash.h"
#include "runtime/device/vulkan/wrapper/result.h"
#include "runtime/device/vulkan/wrapper/spirv.h"

namespace oxbow::vulkan {

namespace {

/// In front of the verdicts, which come before the driver's bytes.
struct CacheHeader {
  char magic[8];
  /// Of all that follows this number.
  uint64_t hash;
  uint64_t verdicts;
};

constexpr char kCacheMagic[8] = {'o', 'x', 'b', 'p', 'i', 'p', 'e', '2'};
constexpr size_t kHashedFrom = offsetof(CacheHeader, verdicts);
/// More than there can be shaders.
constexpr size_t kMostVerdicts = 1024;
/// VkPipelineCacheHeaderVersionOne, which a device's functions may not be given less than.
constexpr size_t kDriverHeaderBytes = 16 + VK_UUID_SIZE;

/// Stored bytes in their parts; both empty when they are not what write made on this device.
struct CacheParts {
  std::span<const std::byte> verdicts;
  std::span<const std::byte> driver;
};

CacheParts cache_parts(const VkPhysicalDeviceProperties& properties,
                       std::span<const std::byte> blob) {
  CacheHeader header;
  if (blob.size() < sizeof(header) + kDriverHeaderBytes) return {};
  std::memcpy(&header, blob.data(), sizeof(header));
  if (std::memcmp(header.magic, kCacheMagic, sizeof(kCacheMagic)) != 0) return {};
  if (header.hash != hash_bytes(blob.data() + kHashedFrom, blob.size() - kHashedFrom)) return {};
  const std::span<const std::byte> rest = blob.subspan(sizeof(header));
  const size_t room = (rest.size() - kDriverHeaderBytes) / sizeof(Proofs::Stored);
  if (header.verdicts > std::min(room, kMostVerdicts)) return {};
  const size_t bytes = static_cast<size_t>(header.verdicts) * sizeof(Proofs::Stored);
  const CacheParts parts = {rest.first(bytes), rest.subspan(bytes)};
  uint32_t fields[4];
  std::memcpy(fields, parts.driver.data(), sizeof(fields));
  const bool same = fields[1] == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
                    fields[2] == properties.vendorID && fields[3] == properties.deviceID &&
                    std::memcmp(parts.driver.data() + sizeof(fields), properties.pipelineCacheUUID,
                                VK_UUID_SIZE) == 0;
  return same ? parts : CacheParts();
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

Status PipelineCache::write(const Device& device, Proofs& proofs, std::span<std::byte> blob,
                            size_t* bytes, Error* error) {
  const auto get = [&](size_t* size, void* data) {
    return call("the pipeline cache", error, [&] {
      return device.api().GetPipelineCacheData(device.handle, handle_, size, data);
    });
  };
  size_t driver_bytes = 0;
  OXB_TRY(get(&driver_bytes, nullptr));
  CacheHeader header = {};
  header.verdicts = std::min(proofs.count(), kMostVerdicts);
  const size_t front = sizeof(header) + header.verdicts * sizeof(Proofs::Stored);
  *bytes = front + driver_bytes;
  if (blob.data() == nullptr) return Status::kOk;
  if (blob.size() < *bytes) {
    return fail(error, Status::kBufferTooSmall, "the buffer has %zu bytes; the cache needs %zu",
                blob.size(), *bytes);
  }
  OXB_TRY(get(&driver_bytes, blob.data() + front));
  *bytes = front + driver_bytes;
  Proofs::Stored verdicts[kMostVerdicts];
  proofs.copy({verdicts, header.verdicts});
  std::memcpy(blob.data() + sizeof(header), verdicts, front - sizeof(header));
  std::memcpy(header.magic, kCacheMagic, sizeof(kCacheMagic));
  std::memcpy(blob.data(), &header, sizeof(header));
  header.hash = hash_bytes(blob.data() + kHashedFrom, *bytes - kHashedFrom);
  std::memcpy(blob.data(), &header, sizeof(header));
  return Status::kOk;
}

Status PipelineCache::read(const Device& device, std::span<const std::byte> blob, Proofs& proofs,
                           Error* error) {
  const CacheParts parts = cache_parts(device.properties, blob);
  if (parts.driver.empty()) return Status::kOk;
  Proofs::Stored verdicts[kMostVerdicts];
  const size_t count = parts.verdicts.size() / sizeof(Proofs::Stored);
  if (count != 0) std::memcpy(verdicts, parts.verdicts.data(), parts.verdicts.size());
  if (!proofs.read({verdicts, count})) {
    return fail(error, Status::kOutOfMemory, "no memory for the list of proofs");
  }
  VkPipelineCacheCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = parts.driver.size();
  info.pInitialData = parts.driver.data();
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
  *pipeline = {found->handle, layouts.pipeline, layouts.set, found->written};
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
  Made made = {key, VK_NULL_HANDLE, written_bindings({key.code, key.code_words})};
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
