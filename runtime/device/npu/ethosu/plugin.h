#pragma once

// The plug-in for Arm's Ethos-U: layers that Vela has compiled to exact sums, on Linux through accel/ethosu.

#include <cstddef>
#include <cstdint>

#include "runtime/api/oxbow_npu.h"

namespace oxbow {

/// The system's calls that the plug-in makes; tests have others. All return -1 on failure.
struct EthosuSystem {
  void* context = nullptr;
  int (*open)(void* context, const char* path) = nullptr;
  int (*close)(void* context, int file) = nullptr;
  int (*call)(void* context, int file, unsigned long request, void* argument) = nullptr;
  /// Null on failure.
  void* (*map)(void* context, int file, uint64_t offset, size_t bytes) = nullptr;
  void (*unmap)(void* context, void* address, size_t bytes) = nullptr;
};

/// The table comes first: oxb_npu_host.plugin leads to the rest.
struct EthosuPlugin {
  oxb_npu_plugin table;
  const EthosuSystem* system;
};

extern const EthosuSystem kLinuxEthosuSystem;

EthosuPlugin make_ethosu_plugin(const EthosuSystem* system);

/// On /dev/accel/accel0, or what the setting "device" names.
extern const EthosuPlugin kEthosuPlugin;

}  // namespace oxbow
