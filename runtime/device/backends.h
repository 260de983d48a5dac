#pragma once

// The backends of backends.inc, whether or not this library was built with them.

#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

struct DeviceDriver;
// Defined in the devices' folders, which a build without them leaves out.
#define OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_LIBRARY(NAME, number, name, constant)
#define OXB_DEVICE(NAME, number, name, constant, driver, context) \
  class context;                                                  \
  extern const DeviceDriver driver;
#include "runtime/device/backends.inc"

/// Who computes. Steps that a library or a device cannot serve run on the CPU's kernels.
enum class Backend : uint8_t {
#define OXB_PROCESSOR(NAME, number, name, constant) constant = number,
#define OXB_LIBRARY(NAME, number, name, constant) constant = number,
#define OXB_DEVICE(NAME, number, name, constant, driver, context) constant = number,
#include "runtime/device/backends.inc"
};

/// Devices that ops can have a bind function for.
enum class DeviceKind : uint8_t {
#define OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_LIBRARY(NAME, number, name, constant)
#define OXB_DEVICE(NAME, number, name, constant, driver, context) constant,
#include "runtime/device/backends.inc"
  kCount
};

inline constexpr size_t kDeviceKinds = static_cast<size_t>(DeviceKind::kCount);

struct BackendInfo {
  Backend backend;
  const char* name;
  /// Of the build; null: always there.
  const char* build_option;
  bool is_built_in;
  /// Null: no device, or one that is not built in.
  const DeviceDriver* device;
};

/// In the order of their numbers.
std::span<const BackendInfo> backends();
/// Null: no backend has this number.
const BackendInfo* find_backend(int number);
bool is_built_in(Backend backend);

}  // namespace oxbow
