#pragma once

// Size arithmetic on numbers from outside. Each returns false on overflow and then leaves no result
// to be used by accident.

#include <cstddef>
#include <cstdint>

namespace oxbow {

[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t* sum) {
  return !__builtin_add_overflow(a, b, sum);
}

[[nodiscard]] inline bool checked_mul(uint64_t a, uint64_t b, uint64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

/// `alignment` is a power of two.
[[nodiscard]] inline bool checked_align(uint64_t value, uint64_t alignment, uint64_t* aligned) {
  if (!checked_add(value, alignment - 1, aligned)) return false;
  *aligned &= ~(alignment - 1);
  return true;
}

/// For sizes that were checked before.
constexpr size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

}  // namespace oxbow
