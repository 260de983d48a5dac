#pragma once

// Linux's interface to Ethos-U (accel/ethosu, in mainline since 6.19): the calls as this library uses them, declared from the
// kernel's documented numbers and layouts. Sizes are in bytes, handles are never 0.

#include <cstdint>

namespace oxbow::ethosu_accel {

inline constexpr uint32_t kMaxRegions = 8;

struct NpuInfo {
  uint32_t id;
  uint32_t config;
  /// In KiB.
  uint32_t sram_size;
};
struct DevQuery {
  uint32_t type;
  uint32_t size;
  uint64_t pointer;
};
struct BoCreate {
  uint64_t size;
  uint32_t flags;
  uint32_t handle;
};
struct BoWait {
  uint32_t handle;
  uint32_t pad;
  /// Absolute, of CLOCK_MONOTONIC.
  int64_t timeout_ns;
};
struct BoMmapOffset {
  uint32_t handle;
  uint32_t pad;
  uint64_t offset;
};
struct StreamCreate {
  uint32_t size;
  uint32_t flags;
  uint64_t data;
  uint32_t handle;
  uint32_t pad;
};
struct Job {
  uint32_t stream;
  uint32_t sram_size;
  uint32_t regions[kMaxRegions];
};
struct Submit {
  uint64_t jobs;
  uint32_t job_count;
  uint32_t pad;
};
/// Of all DRM devices.
struct GemClose {
  uint32_t handle;
  uint32_t pad;
};

/// A call that reads and writes its argument, as the kernel numbers them: direction, size, 'd', number.
template <typename Argument>
constexpr unsigned long number(unsigned long code) {
  return 3ul << 30 | sizeof(Argument) << 16 | static_cast<unsigned long>('d') << 8 | code;
}
inline constexpr unsigned long kDevQuery = number<DevQuery>(0x40);
inline constexpr unsigned long kBoCreate = number<BoCreate>(0x41);
inline constexpr unsigned long kBoWait = number<BoWait>(0x42);
inline constexpr unsigned long kBoMmapOffset = number<BoMmapOffset>(0x43);
inline constexpr unsigned long kStreamCreate = number<StreamCreate>(0x44);
inline constexpr unsigned long kSubmit = number<Submit>(0x45);
/// Only reads its argument.
inline constexpr unsigned long kGemClose =
    1ul << 30 | sizeof(GemClose) << 16 | static_cast<unsigned long>('d') << 8 | 0x09;

}  // namespace oxbow::ethosu_accel
