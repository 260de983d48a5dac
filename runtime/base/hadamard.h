#pragma once

// Rows turned in blocks, so that what sticks out of a few elements is spread over all of its block before one scale
// must serve it: each block x becomes H x, where H is the Walsh-Hadamard matrix of the block's size n, entries +1 and -1.
// Nothing is divided by the root of n. Since H H = n, whoever multiplies turned rows with turned weights has
// (H x) . (H w) = n (x . w), and divides by n, a power of two, once and before.
//
// Additions have a fixed order: h = 1, 2, 4, ... up to n / 2, and for each h the pairs (i, i + h) become
// (a + b, a - b). Every sum has two operands, so that however pairs are taken together the bits are the same.

#include <cstddef>
#include <cstdint>

namespace oxbow {

inline constexpr size_t kMinHadamardBlock = 16;
inline constexpr size_t kMaxHadamardBlock = 512;

/// Whether rows whose parts have `width` elements and one scale can be turned in blocks of `block`.
constexpr bool is_hadamard_block(size_t block, size_t width) {
  return block >= kMinHadamardBlock && block <= kMaxHadamardBlock && (block & (block - 1)) == 0 &&
         width % block == 0;
}

/// The largest block that rows of `width` elements can be turned in; 0: none.
constexpr size_t largest_hadamard_block(size_t width) {
  for (size_t block = kMaxHadamardBlock; block >= kMinHadamardBlock; block /= 2) {
    if (width % block == 0 && width != 0) return block;
  }
  return 0;
}

/// In place. `block` divides `width`.
template <typename Float>
[[gnu::always_inline]] inline void hadamard_row(Float* x, size_t width, size_t block) {
  for (Float* end = x + width; x != end; x += block) {
    for (size_t h = 1; h < block; h *= 2) {
      for (size_t first = 0; first < block; first += 2 * h) {
        for (size_t i = first; i < first + h; ++i) {
          const Float a = x[i], b = x[i + h];
          x[i] = a + b;
          x[i + h] = a - b;
        }
      }
    }
  }
}

}  // namespace oxbow
