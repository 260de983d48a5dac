#pragma once

// What tests change and count. Nothing else may write here; needs no Vulkan header.

#include <atomic>
#include <cstdint>

#include "runtime/device/vulkan/wrapper/features.h"

namespace oxbow::vulkan {

/// A device that is not there: features and limits as it reports them. The real one behaves as if it had no more.
struct SimulatedDevice {
  const char* name = "";
  /// As VK_MAKE_API_VERSION makes it.
  uint32_t api_version = 0;
  VulkanFeatures features;
  uint64_t max_allocation = UINT64_MAX;
  /// The host sees all of its memory.
  bool unified = true;
  bool timestamps = true;
};

struct Hooks {
  /// Validation with synchronisation checks, as the environment variable OXBOW_VULKAN_VALIDATE=1 asks
  /// for too. Creation then fails when the layer is not installed.
  bool validation = false;
  /// Behave as on a device whose memory the host cannot see.
  bool staged = false;
  /// Behave as on a device without packed integer dot products.
  bool no_int_dot = false;
  /// Not 0: behave as on a device that binds at multiples of this.
  uint32_t binding_alignment = 0;
  /// Behave as on a device without the feature of 8-bit storage.
  bool no_storage8 = false;
  /// Not 0: behave as on a device that binds, or gives at once, so many bytes at most.
  uint32_t max_binding_bytes = 0;
  uint64_t max_allocation = 0;
  /// Null: none.
  const SimulatedDevice* simulated = nullptr;
  /// Not null: the proof of this shader finds wrong numbers in its form with packed dot products, or in both.
  const char* spoiled_shader = nullptr;
  bool spoil_plain = false;
  /// As if the machine had the loader and no device.
  bool no_device = false;
  /// Opened instead of the loader.
  const char* library = nullptr;
  /// The fail_at-th call from now on that can fail gives `fail_with`, a VkResult, undone. 0: none.
  std::atomic<uint32_t> fail_at = 0;
  int32_t fail_with = 0;
};

struct Counters {
  /// Vulkan objects and allocations alive.
  std::atomic<int64_t> objects = 0;
  /// Bytes of device memory alive.
  std::atomic<int64_t> bytes = 0;
  /// Proofs run: see proof.h.
  std::atomic<uint64_t> proofs = 0;
  /// Calls made that can fail.
  std::atomic<uint64_t> calls = 0;
  /// Pipelines made of shaders with packed integer dot products.
  std::atomic<uint32_t> int_dot_pipelines = 0;
  /// What validation objected to.
  std::atomic<uint32_t> errors = 0;
};

Hooks& hooks();
Counters& counters();

}  // namespace oxbow::vulkan
