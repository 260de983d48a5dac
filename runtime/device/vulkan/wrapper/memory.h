#pragma once

// The device memory of a session: one allocation for each kind, all made at its creation.
//
//   weights      the data of the model file, as it lies there
//   states       as the session lays them out, header and ring positions first
//   activations  | activations and inputs | output | scratch |
//   values       DispatchValues for each dispatch
//
// Where the host sees the device's memory, states and activations are used in place by both. Elsewhere
// ("staged") the host has a mirror of each, with the same offsets but for the scratch, which it never
// sees, and commands copy between the two.

#include <cstddef>
#include <span>

#include "runtime/device/vulkan/wrapper/buffer.h"
#include "runtime/device/vulkan/wrapper/context.h"
#include "runtime/device/vulkan/wrapper/step.h"

namespace oxbow::vulkan {

struct MemorySizes {
  size_t weights = 0;
  size_t states = 0;
  /// Bytes of the states that are the host's alone: at their start.
  size_t state_header = 0;
  size_t activations = 0;
  size_t output = 0;
  size_t scratch = 0;
  size_t values = 0;
};

struct Memory {
  MemorySizes sizes;
  bool staged = false;
  Buffer weights, states, activations, values;
  Buffer states_mirror, activations_mirror;

  Status open(const Device& device, const MemorySizes& wanted, Error* error);
  void close(const Device& device);
  /// What open would take from the device, all buffers together.
  static Status measure(const Device& device, const MemorySizes& wanted, size_t* bytes,
                        Error* error);

  size_t taken() const;
  std::byte* host_states() { return (staged ? states_mirror : states).mapped; }
  std::byte* host_activations() { return (staged ? activations_mirror : activations).mapped; }
  std::byte* host_output() { return host_activations() + output_offset(); }
  size_t output_offset() const { return sizes.activations; }
  size_t scratch_offset() const { return sizes.activations + sizes.output; }
  DispatchValues* dispatch_values(size_t dispatch) const {
    return reinterpret_cast<DispatchValues*>(values.mapped) + dispatch;
  }

  /// The buffer a range is in, and where there.
  const Buffer& locate(const Range& range, uint64_t* offset) const;
};

}  // namespace oxbow::vulkan
