#include "runtime/device/vulkan/wrapper/program.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/tensor.h"
#include "runtime/device/vulkan/wrapper/copies.h"
#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {
namespace {

/// Weights go to a device without shared memory in pieces of this size.
constexpr size_t kStagingBytes = size_t{4} << 20;

}  // namespace

Status Program::open(Context& context, const MemorySizes& sizes, Error* error) {
  context_ = &context;
  OXB_TRY(memory_.open(context.device, sizes, error));
  return commands_.open(context, error);
}

void Program::close() {
  if (context_ == nullptr) return;
  const Device& device = context_->device;
  commands_.close();
  destroy(&queries_, [&](VkQueryPool object) {
    device.api().DestroyQueryPool(device.handle, object, nullptr);
  });
  destroy(&descriptors_, [&](VkDescriptorPool object) {
    device.api().DestroyDescriptorPool(device.handle, object, nullptr);
  });
  memory_.close(device);
  context_ = nullptr;
}

Status Program::copy_weights(std::span<const std::byte> data, Error* error) {
  if (!memory_.staged) {
    if (!data.empty()) std::memcpy(memory_.weights.mapped, data.data(), data.size());
    return Status::kOk;
  }
  const Device& device = context_->device;
  Buffer staging;
  Status status = staging.open(device, Place::kShared, kStagingBytes, "staged weights", error);
  for (size_t done = 0; status == Status::kOk && done < data.size(); done += kStagingBytes) {
    const size_t bytes = std::min(kStagingBytes, data.size() - done);
    std::memcpy(staging.mapped, data.data() + done, bytes);
    VkCommandBuffer commands = VK_NULL_HANDLE;
    status = commands_.begin(&commands, error);
    if (status != Status::kOk) break;
    const VkBufferCopy copy = {0, done, bytes};
    device.api().CmdCopyBuffer(commands, staging.handle, memory_.weights.handle, 1, &copy);
    barrier(device.api(), commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
    status = commands_.end(commands, error);
    if (status == Status::kOk) status = commands_.submit_and_wait(commands, error);
  }
  staging.close(device);
  return status;
}

Status Program::record(const ProgramSpec& spec, Error* error) {
  OXB_TRY(make_dispatches(spec, error));
  OXB_TRY(make_descriptors(spec, error));
  if (context_->device.timestamp_period != 0.0 && spec.steps.size() != 0) {
    VkQueryPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = static_cast<uint32_t>(2 * spec.steps.size());
    OXB_TRY(create("timestamps", error, [&] {
      return device().api().CreateQueryPool(device().handle, &info, nullptr, &queries_);
    }));
  }
  OXB_TRY(make_segments(spec, error));
  return memory_.staged ? make_copies(error) : Status::kOk;
}

uint64_t Program::rest_of(uint64_t offset) const {
  return offset % std::max<uint64_t>(1, device().features.binding_alignment);
}

uint32_t Program::rests_of(const Dispatch& dispatch) const {
  uint32_t rests = 0;
  for (uint32_t i = 0; i < dispatch.operand_count; ++i) {
    uint64_t offset = 0;
    memory_.locate(dispatch.operands[i], &offset);
    rests |= static_cast<uint32_t>(rest_of(offset) / kTensorAlignment) << (2 * i);
  }
  return rests;
}

Status Program::make_dispatches(const ProgramSpec& spec, Error* error) {
  const std::lock_guard lock(context_->pipelines_mutex);
  for (const Dispatch& dispatch : spec.dispatches) {
    const VulkanShader& shader = *dispatch.shader;
    PipelineKey key;
    key.int_dot = dispatch.int_dot;
    const std::span<const uint32_t> code = key.int_dot ? shader.int_dot_code : shader.code;
    key.name = shader.name;
    key.code = code.data();
    key.code_words = code.size();
    key.bindings = 1 + dispatch.operand_count;
    key.has_rests = rests_of(dispatch) != 0;
    key.constant_count = dispatch.constant_count;
    std::copy_n(dispatch.constants, dispatch.constant_count, key.constants);
    Pipeline pipeline;
    OXB_TRY(context_->pipelines.find_or_make(device(), context_->cache.handle(), key, &pipeline,
                                             error));
    if (!pipelines_.push(pipeline)) {
      return fail(error, Status::kOutOfMemory, "no memory for the list of pipelines");
    }
  }
  return Status::kOk;
}

Status Program::make_descriptors(const ProgramSpec& spec, Error* error) {
  if (spec.dispatches.empty()) return Status::kOk;
  const Api& api = device().api();
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  for (const Dispatch& dispatch : spec.dispatches)
    size.descriptorCount += 1 + dispatch.operand_count;
  VkDescriptorPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = static_cast<uint32_t>(spec.dispatches.size());
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  OXB_TRY(create("descriptors", error, [&] {
    return api.CreateDescriptorPool(device().handle, &info, nullptr, &descriptors_);
  }));
  for (size_t d = 0; d < spec.dispatches.size(); ++d) {
    const Dispatch& dispatch = spec.dispatches[d];
    const VkDescriptorSetLayout layout = pipelines_[d].set_layout;
    VkDescriptorSetAllocateInfo set_info = {};
    set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    set_info.descriptorPool = descriptors_;
    set_info.descriptorSetCount = 1;
    set_info.pSetLayouts = &layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    OXB_TRY(call("descriptors", error,
                 [&] { return api.AllocateDescriptorSets(device().handle, &set_info, &set); }));
    VkDescriptorBufferInfo buffers[kMaxBindings];
    VkWriteDescriptorSet writes[kMaxBindings] = {};
    buffers[0] = {memory_.values.handle, d * sizeof(DispatchValues), sizeof(DispatchValues)};
    for (uint32_t i = 0; i < dispatch.operand_count; ++i) {
      const Range& range = dispatch.operands[i];
      VkDescriptorBufferInfo& buffer = buffers[i + 1];
      buffer.buffer = memory_.locate(range, &buffer.offset).handle;
      const uint64_t rest = rest_of(buffer.offset);
      buffer.offset -= rest;
      buffer.range = rest + range.bytes;
    }
    memory_.dispatch_values(d)->rests = rests_of(dispatch);
    for (uint32_t i = 0; i <= dispatch.operand_count; ++i) {
      writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      writes[i].dstSet = set;
      writes[i].dstBinding = i;
      writes[i].descriptorCount = 1;
      writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      writes[i].pBufferInfo = &buffers[i];
    }
    api.UpdateDescriptorSets(device().handle, dispatch.operand_count + 1, writes, 0, nullptr);
    if (!sets_.push(set)) return fail(error, Status::kOutOfMemory, "no memory for descriptors");
  }
  return Status::kOk;
}

std::span<const Program::Segment> Program::segments(uint32_t entry) const {
  const uint32_t begin = entry == 0 ? 0 : segment_ends_[entry - 1];
  return {segments_.begin() + begin, segments_.begin() + segment_ends_[entry]};
}

bool Program::has_many_rows(const Segment& segment) const {
  for (const ManyRows& many : many_rows_) {
    if (many.step < segment.first_step || many.step >= segment.end_step) continue;
    if (memory_.dispatch_values(many.dispatch)->groups[0] != 0) return true;
  }
  return false;
}

Status Program::run(const Segment& segment, bool timed, Error* error) {
  VkCommandBuffer commands = segment.commands;
  if (timed && segment.timed != VK_NULL_HANDLE) {
    commands = segment.timed;
  } else if (segment.few_rows != VK_NULL_HANDLE && !has_many_rows(segment)) {
    commands = segment.few_rows;
  }
  return commands_.submit_and_wait(commands, error);
}

Status Program::step_nanoseconds(uint32_t step, uint64_t* nanoseconds, Error* error) {
  *nanoseconds = 0;
  if (queries_ == VK_NULL_HANDLE) return Status::kOk;
  uint64_t ticks[2] = {};
  OXB_TRY(call("timestamps", error, [&] {
    return device().api().GetQueryPoolResults(device().handle, queries_, 2 * step, 2, sizeof(ticks),
                                              ticks, sizeof(ticks[0]),
                                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  }));
  const uint64_t passed = (ticks[1] - ticks[0]) & device().timestamp_mask;
  *nanoseconds = static_cast<uint64_t>(static_cast<double>(passed) * device().timestamp_period);
  return Status::kOk;
}

Status Program::make_copies(Error* error) {
  const Range states = {Region::kStates, 0, memory_.sizes.states - memory_.sizes.state_header};
  const Range activations = {Region::kActivations, 0, memory_.sizes.activations};
  const Api& api = device().api();
  for (const bool to_device : {true, false}) {
    Copies copies;
    if (!copies.add(memory_, states) || (!to_device && !copies.add(memory_, activations))) {
      return fail(error, Status::kOutOfMemory, "no memory for a list of copies");
    }
    VkCommandBuffer& commands = to_device ? upload_ : download_;
    OXB_TRY(commands_.begin(&commands, error));
    if (!to_device) {
      barrier(api, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
              VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
              VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    }
    copies.record(api, memory_, to_device, commands);
    if (to_device) {
      barrier(api, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
              VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                  VK_ACCESS_TRANSFER_WRITE_BIT);
    } else {
      barrier(api, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
              VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    }
    OXB_TRY(commands_.end(commands, error));
  }
  return Status::kOk;
}

Status Program::download(Error* error) {
  return memory_.staged ? commands_.submit_and_wait(download_, error) : Status::kOk;
}

Status Program::upload(Error* error) {
  return memory_.staged ? commands_.submit_and_wait(upload_, error) : Status::kOk;
}

}  // namespace oxbow::vulkan
