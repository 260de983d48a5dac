#pragma once

#include <cstdint>
#include <ctime>

namespace oxbow {

/// Of a clock that never goes back.
inline uint64_t now_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace oxbow
