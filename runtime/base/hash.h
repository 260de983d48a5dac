#pragma once

// FNV-1a, 64 bits: tells accidents (a flipped bit, the wrong file), not attacks. What a hostile file
// can do is bounded by verification, never by this.

#include <cstddef>
#include <cstdint>

namespace oxbow {

inline constexpr uint64_t kHashSeed = 0xcbf29ce484222325ull;

inline uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = kHashSeed) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t hash = seed;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 0x100000001b3ull;
  return hash;
}

}  // namespace oxbow
