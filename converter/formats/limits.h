#pragma once

// Bounds for sizes that come from files.

#include <cstdint>

namespace oxbow::convert {

// Far above any model this runs, far below where a product of two sizes could overflow.
inline constexpr uint32_t kMaxSize = 1u << 20;
inline constexpr uint32_t kMaxLayers = 1024;

}  // namespace oxbow::convert
