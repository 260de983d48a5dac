#pragma once

// Memory that counts as never written, whatever bytes it has, where valgrind's memcheck watches: an unwritten byte that
// decides something, or that reaches an output, is then told.

#include <cstddef>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_MAKE_MEM_UNDEFINED(address, bytes) 0
#endif

namespace oxbow::testing {

inline void call_unwritten([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
  static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes));
}

/// How many times as long everything may take.
inline double slowness() { return RUNNING_ON_VALGRIND != 0 ? 200 : 1; }

}  // namespace oxbow::testing
