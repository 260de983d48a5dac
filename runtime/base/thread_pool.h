#pragma once

// A fixed team of threads for one session.
//
// It refuses to: allocate after construction, queue, nest, steal, or be used from two threads at once.
// The caller is worker 0 and works along; the others sleep when there is nothing to do. Work is split
// into `count` items by the op, from shapes alone, so results never depend on the number of threads.

#include <cstddef>
#include <type_traits>

namespace oxbow {

class ThreadPool;

/// Runs fn(context, item, worker) for every item in [0, count). A null pool runs them on the caller.
void parallel_for(ThreadPool* pool, size_t count,
                  void (*fn)(void* context, size_t item, size_t worker), void* context);

/// The same for a callable, e.g. a lambda taking (size_t item, size_t worker).
template <typename F>
void parallel_for(ThreadPool* pool, size_t count, F&& body) {
  parallel_for(
      pool, count,
      [](void* context, size_t item, size_t worker) {
        (*static_cast<std::remove_reference_t<F>*>(context))(item, worker);
      },
      &body);
}

}  // namespace oxbow
