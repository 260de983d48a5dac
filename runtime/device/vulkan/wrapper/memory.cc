#include "runtime/device/vulkan/wrapper/memory.h"

#include "runtime/base/checked.h"
#include "runtime/base/tensor.h"
#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {
namespace {

/// One buffer of the list: what it is for, how large, where. No buffer may be empty.
struct Line {
  Buffer Memory::*buffer;
  const char* what;
  size_t bytes;
  Place place;
};

constexpr size_t kMostLines = 6;

size_t list_buffers(const MemorySizes& sizes, bool staged, Line (&lines)[kMostLines]) {
  const auto some = [](size_t bytes) { return bytes == 0 ? kTensorAlignment : bytes; };
  const Place place = staged ? Place::kDevice : Place::kShared;
  const size_t seen = sizes.activations + sizes.output;
  lines[0] = {&Memory::weights, "the weights", some(sizes.weights), place};
  lines[1] = {&Memory::states, "the states", some(sizes.states), place};
  lines[2] = {&Memory::activations, "the activations", some(seen + sizes.scratch), place};
  lines[3] = {&Memory::values, "the dispatches' values", some(sizes.values), Place::kShared};
  if (!staged) return 4;
  lines[4] = {&Memory::states_mirror, "the states' copy", some(sizes.states), Place::kShared};
  lines[5] = {&Memory::activations_mirror, "the activations' copy", some(seen), Place::kShared};
  return 6;
}

}  // namespace

Status Memory::open(const Device& device, const MemorySizes& wanted, Error* error) {
  sizes = wanted;
  staged = !has_unified_memory(device);
  Line lines[kMostLines];
  const size_t count = list_buffers(sizes, staged, lines);
  for (size_t i = 0; i < count; ++i) {
    OXB_TRY((this->*lines[i].buffer)
                .open(device, lines[i].place, lines[i].bytes, lines[i].what, error));
  }
  return Status::kOk;
}

void Memory::close(const Device& device) {
  for (Buffer* buffer :
       {&weights, &states, &activations, &values, &states_mirror, &activations_mirror}) {
    if (buffer->handle != VK_NULL_HANDLE) buffer->close(device);
  }
}

Status Memory::measure(const Device& device, const MemorySizes& wanted, size_t* bytes,
                       Error* error) {
  Line lines[kMostLines];
  const size_t count = list_buffers(wanted, !has_unified_memory(device), lines);
  *bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    Buffer buffer;
    uint32_t type = 0;
    const Status status =
        buffer.measure(device, lines[i].place, lines[i].bytes, lines[i].what, &type, error);
    *bytes += buffer.taken;
    buffer.close(device);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

size_t Memory::taken() const {
  size_t bytes = 0;
  for (const Buffer* buffer :
       {&weights, &states, &activations, &values, &states_mirror, &activations_mirror}) {
    bytes += buffer->taken;
  }
  return bytes;
}

const Buffer& Memory::locate(const Range& range, uint64_t* offset) const {
  *offset = range.offset;
  switch (range.region) {
    case Region::kWeights:
      return weights;
    case Region::kStates:
      *offset += sizes.state_header;
      return states;
    case Region::kOutput:
      *offset += output_offset();
      return activations;
    case Region::kScratch:
      *offset += scratch_offset();
      return activations;
    case Region::kActivations:
      break;
  }
  return activations;
}

}  // namespace oxbow::vulkan
