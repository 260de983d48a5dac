#pragma once

// The Vulkan half of a session. Declared here for all builds; vulkan_backend.cc defines it, or
// vulkan_absent.cc in a library built without Vulkan, where no backend can be opened.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/op.h"

namespace oxbow {

struct Model;
struct Session;
struct VulkanBackend;
class VulkanPlaces;

/// Bytes of a session that move to the device, headers and alignment included.
struct VulkanSizes {
  size_t states = 0;
  /// At the start of the states, the host's alone.
  size_t state_header = 0;
  size_t activations = 0;
};

/// Where the host finds what it would otherwise have in the arena.
struct VulkanAddresses {
  std::byte* states = nullptr;
  std::byte* activations = nullptr;
};

/// Finds a device. kNoDevice with the reason when there is none.
Status open_vulkan(VulkanBackend** backend, Error* error);
/// Null is allowed.
void close_vulkan(VulkanBackend* backend);

/// Appends a step whose bind succeeded. `on_device` tells where it will run.
Status bind_vulkan_step(VulkanBackend& backend, const OpDef& op, BindContext& context,
                        const VulkanPlaces& places, bool* on_device, Error* error);
/// After all steps were bound to count: what they and the model take from the device.
Status count_vulkan(VulkanBackend& backend, const Model& model, const VulkanSizes& sizes,
                    size_t* bytes, Error* error);
/// Takes it, and forgets the steps: they are bound again, to place.
Status place_vulkan(VulkanBackend& backend, const Model& model, const VulkanSizes& sizes,
                    VulkanAddresses* addresses, Error* error);
/// After all steps were bound to place: copies the weights, makes pipelines and commands.
Status record_vulkan(VulkanBackend& backend, const Session& session, Error* error);

/// The steps of an entry point, whose inputs are placed. `context` may be that of a sibling's stream.
Status run_vulkan(const Session& session, uint32_t entry, RunContext& context);
/// From now on its device counts as lost.
void lose_vulkan(VulkanBackend& backend);

/// Before the host reads states or activations.
Status vulkan_to_host(VulkanBackend& backend, Error* error);
/// After the host wrote states.
void vulkan_states_changed(VulkanBackend& backend);

size_t vulkan_bytes(const VulkanBackend& backend);

/// What vulkan_cache gave once; bytes that are not this device's are ignored.
Status read_vulkan_cache(VulkanBackend& backend, std::span<const std::byte> cache, Error* error);
/// The device's compiled shaders. `bytes` tells how many they are; with a null buffer that is all.
Status vulkan_cache(VulkanBackend& backend, std::span<std::byte> buffer, size_t* bytes,
                    Error* error);

}  // namespace oxbow
