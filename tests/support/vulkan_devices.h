#pragma once

// Devices that are not here, as they report themselves: what tests feed through the wrapper's hooks. Every figure has its
// source; where none was found it is the least that the specification lets a device have, which is marked so.

#include <cstdint>

#include "runtime/device/vulkan/wrapper/hooks.h"

namespace oxbow::testing {

enum class FigureSource : uint8_t {
  /// The specification's minimum (or its maximum, for an alignment; or no such feature): nothing better was found.
  kSpecification,
  /// The source of the driver, in the file that the row names; as it was in August 2026.
  kDriver,
  /// What a user's device printed, at the address that the row names.
  kReport,
  /// Asked of the driver itself.
  kMeasured,
};

struct Figure {
  uint64_t value;
  FigureSource source;
};

inline constexpr Figure least(uint64_t value) { return {value, FigureSource::kSpecification}; }
inline constexpr Figure driver(uint64_t value) { return {value, FigureSource::kDriver}; }
inline constexpr Figure report(uint64_t value) { return {value, FigureSource::kReport}; }
inline constexpr Figure measured(uint64_t value) { return {value, FigureSource::kMeasured}; }

struct PublishedDevice {
  const char* name;
  /// Where the figures are from.
  const char* driver_file;
  const char* report_address;
  /// 10, 11, 12, 13: of version 1.x.
  Figure version;
  Figure max_bindings;
  Figure binding_alignment;
  Figure max_binding_bytes;
  Figure max_allocation;
  Figure max_group_threads;
  Figure shared_bytes;
  Figure subgroup_size;
  Figure int_dot;
  Figure float16;
  Figure storage8;
  Figure timestamps;
  /// The host sees all of its memory: a phone's chip does.
  bool unified;
  /// Ops of the tiny model that stay on the CPU, by their names and a space behind each; null: the device is refused.
  const char* cpu_ops;

  vulkan::SimulatedDevice simulated() const {
    vulkan::SimulatedDevice device;
    device.name = name;
    // Bits 22 and up are the major version, 12 to 21 the minor one.
    device.api_version = uint32_t{1} << 22 | static_cast<uint32_t>(version.value % 10) << 12;
    device.features.int_dot = int_dot.value != 0;
    device.features.float16 = float16.value != 0;
    device.features.storage8 = storage8.value != 0;
    device.features.subgroup_size = static_cast<uint32_t>(subgroup_size.value);
    device.features.max_group_threads = static_cast<uint32_t>(max_group_threads.value);
    device.features.shared_bytes = static_cast<uint32_t>(shared_bytes.value);
    device.features.max_bindings = static_cast<uint32_t>(max_bindings.value);
    device.features.binding_alignment = static_cast<uint32_t>(binding_alignment.value);
    device.features.max_binding_bytes = static_cast<uint32_t>(max_binding_bytes.value);
    device.max_allocation = max_allocation.value;
    device.unified = unified;
    device.timestamps = timestamps.value != 0;
    return device;
  }
};

inline constexpr uint64_t kKib = 1024, kMib = 1024 * kKib, kGib = 1024 * kMib;

/// In the order of the members. The files are of Mesa unless a row says otherwise.
inline constexpr PublishedDevice kPublishedDevices[] = {
    {"the specification's minimum", "", "", least(11), least(4), least(256), least(128 * kMib),
     least(kGib), least(128), least(16 * kKib), least(1), least(0), least(0), least(0), least(0),
     false, "Attention LayerNorm Linear "},
    {"Adreno 6xx, Turnip", "src/freedreno/vulkan/tu_device.cc, common/freedreno_devices.py", "",
     least(11), driver(16777216), driver(4), driver(128 * kMib), driver(0xffffffff), least(128),
     driver(32 * kKib), least(1), driver(1), driver(1), least(0), driver(1), true, ""},
    {"Adreno 610, Turnip", "src/freedreno/common/freedreno_devices.py", "", least(11),
     driver(16777216), driver(4), driver(128 * kMib), driver(0xffffffff), least(128),
     driver(16 * kKib), least(1), driver(1), driver(1), least(0), driver(1), true, ""},
    {"Adreno 702, Turnip 25.1", "src/freedreno/common/freedreno_devices.py",
     "github.com/meta-flutter/workspace-automation/issues/150", report(10), driver(16777216),
     driver(4), report(128 * kMib), driver(0xffffffff), least(128), driver(16 * kKib), driver(16),
     driver(1), driver(1), least(0), driver(1), true, nullptr},
    {"Adreno 640, Qualcomm", "", "github.com/ggml-org/whisper.cpp/issues/2765", least(11), least(4),
     least(256), least(128 * kMib), least(kGib), least(128), least(16 * kKib), report(64), least(0),
     report(0), least(0), least(0), true, "Attention LayerNorm Linear "},
    {"Adreno X1-45, Qualcomm", "", "github.com/MicroPerceptron/virtio-accel/pull/183", report(13),
     least(4), report(64), least(128 * kMib), least(kGib), least(128), least(16 * kKib), least(1),
     least(0), least(0), least(0), least(0), true, "Attention LayerNorm Linear "},
    {"Mali of Valhall from G610 on, PanVK",
     "src/panfrost/vulkan/panvk_vX_physical_device.c, panvk_descriptor_set_layout.h", "",
     driver(14), driver(4096), driver(16), driver(0xffffffff), driver(0xffffffff), least(128),
     driver(32 * kKib), driver(16), driver(1), driver(1), driver(1), driver(1), true, ""},
    {"Mali of Bifrost, PanVK", "src/panfrost/vulkan/panvk_vX_physical_device.c, panvk_shader.h", "",
     driver(13), driver(64), driver(16), driver(0xffffffff), driver(0xffffffff), least(128),
     driver(32 * kKib), driver(8), driver(1), driver(0), driver(1), driver(0), true, ""},
    {"PowerVR Rogue, Mesa", "src/imagination/vulkan/pvr_physical_device.c, common/pvr_limits.h", "",
     least(11), driver(16), driver(4), driver(128 * kMib), driver(kGib), driver(128),
     driver(16 * kKib), least(1), driver(1), driver(0), driver(0), driver(0), true, ""},
    {"Xclipse, Samsung", "", "", least(11), least(4), least(256), least(128 * kMib), least(kGib),
     least(128), least(16 * kKib), least(1), least(0), least(0), least(0), least(0), true,
     "Attention LayerNorm Linear "},
    {"V3D 4.2 of a Raspberry Pi 4", "src/broadcom/vulkan/v3dv_device.c, v3dv_limits.h",
     "github.com/LibreELEC/LibreELEC.tv/pull/5884", driver(13), driver(8), driver(32), driver(kGib),
     driver(kGib), report(256), report(16 * kKib), driver(16), driver(1), driver(0), driver(1),
     driver(1), true, "Attention "},
    {"V3D 7.1 of a Raspberry Pi 5", "src/broadcom/vulkan/v3dv_device.c, common/v3d_limits.h",
     "github.com/bevyengine/bevy/issues/18867", driver(13), report(8), driver(32), report(kGib),
     driver(kGib), driver(256), driver(32 * kKib), driver(16), driver(1), driver(1), driver(1),
     driver(1), true, "Attention "},
    {"Intel HD Graphics 630 in 2018", "", "github.com/KhronosGroup/Vulkan-Tools/pull/106",
     report(11), report(64), least(256), report(kGib), least(kGib), least(128), least(16 * kKib),
     least(1), report(0), least(0), least(0), least(0), true, ""},
    {"Intel, ANV", "src/intel/vulkan/anv_physical_device.c, anv_types.h, brw_compiler.h",
     "github.com/KhronosGroup/Vulkan-Loader/pull/779", least(13), report(65535), driver(4),
     report(kGib), least(kGib), least(128), least(16 * kKib), driver(32), driver(1), driver(1),
     driver(1), driver(1), true, ""},
    {"GeForce GTX 1050 Ti in 2018", "", "github.com/KhronosGroup/Vulkan-Tools/pull/106", report(11),
     report(1048576), least(256), report(0xffffffff), least(kGib), least(128), least(16 * kKib),
     least(1), least(0), least(0), least(0), least(0), false, ""},
    {"llvmpipe of Mesa 22.3", "", "", measured(13), measured(32), measured(16),
     measured(128 * kMib), measured(2 * kGib), measured(1024), measured(32 * kKib), measured(8),
     measured(1), measured(1), measured(1), measured(1), true, ""},
    {"SwiftShader of Chromium 156", "src/Vulkan/VkConfig.hpp of SwiftShader", "", measured(13),
     measured(30), measured(256), measured(kGib), measured(kGib), measured(256),
     measured(32 * kKib), measured(4), measured(1), measured(0), measured(0), measured(1), true,
     ""},
};

}  // namespace oxbow::testing
