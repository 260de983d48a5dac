#include "runtime/device/vulkan/wrapper/copies.h"

namespace oxbow::vulkan {

bool Copies::merge(Array<VkBufferCopy>& list, uint64_t begin, uint64_t end) {
  // What meets the new interval is swallowed by it; what is swallowed becomes empty and is filled again.
  for (bool grown = true; grown;) {
    grown = false;
    for (VkBufferCopy& copy : list) {
      const uint64_t copy_end = copy.srcOffset + copy.size;
      if (copy.size == 0 || copy_end < begin || end < copy.srcOffset) continue;
      begin = begin < copy.srcOffset ? begin : copy.srcOffset;
      end = end > copy_end ? end : copy_end;
      copy.size = 0;
      grown = true;
    }
  }
  const VkBufferCopy made = {begin, begin, end - begin};
  for (VkBufferCopy& copy : list) {
    if (copy.size != 0) continue;
    copy = made;
    return true;
  }
  return list.push(made);
}

bool Copies::add(const Memory& memory, const Range& range) {
  if (range.bytes == 0 || range.region == Region::kWeights || range.region == Region::kScratch) {
    return true;
  }
  uint64_t offset = 0;
  const Buffer& buffer = memory.locate(range, &offset);
  return merge(&buffer == &memory.states ? states_ : activations_, offset, offset + range.bytes);
}

void Copies::record(const Api& api, const Memory& memory, bool to_device,
                    VkCommandBuffer commands) const {
  const auto copy = [&](const Array<VkBufferCopy>& list, const Buffer& device,
                        const Buffer& mirror) {
    for (const VkBufferCopy& part : list) {
      if (part.size == 0) continue;
      api.CmdCopyBuffer(commands, to_device ? mirror.handle : device.handle,
                        to_device ? device.handle : mirror.handle, 1, &part);
    }
  };
  copy(states_, memory.states, memory.states_mirror);
  copy(activations_, memory.activations, memory.activations_mirror);
}

}  // namespace oxbow::vulkan
