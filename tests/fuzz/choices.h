#pragma once

// What a fuzz target decides by its input: the bytes in their order, and when they are used up, random numbers that
// follow from the first four. So every input, however short, says all that happens, and one that is led by coverage can
// change a late choice, or add one, and keep the others.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "runtime/base/hash.h"

namespace oxbow::testing {

class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes)
      : bytes_(bytes), random_(hash_bytes(bytes.data(), std::min<size_t>(bytes.size(), 4))) {}

  /// From 0 to bound - 1; 0 when there is nothing to choose from.
  size_t below(size_t bound) {
    if (bound <= 1) return 0;
    uint64_t value = byte();
    for (size_t most = 256; most < bound && most < (size_t{1} << 32); most <<= 8) {
      value = value << 8 | byte();
    }
    return value % bound;
  }
  bool one_in(size_t times) { return below(times) == 0; }
  uint64_t word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  /// From -2 to 2, by steps of 1/64.
  float number() { return static_cast<float>(below(257)) / 64.0f - 2.0f; }

 private:
  uint8_t byte() {
    if (at_ < bytes_.size()) return bytes_[at_++];
    return static_cast<uint8_t>(random_());
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  std::mt19937_64 random_;
};

}  // namespace oxbow::testing
