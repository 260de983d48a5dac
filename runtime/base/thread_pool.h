#pragma once

// A fixed team of threads for one session.
//
// It refuses to: allocate after construction, queue, nest, steal, or be used from two threads at
// once. The caller is worker 0 and works along; the others sleep when there is nothing to do. Work
// is split into `count` items by the op, never by timing, and what an item computes does not depend on
// how much else is in it: so results never depend on the number of threads.

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/base/status.h"

namespace oxbow {

class ThreadPool {
 public:
  static constexpr size_t kMaxThreads = 256;
  static constexpr size_t kAlignment = 64;

  /// Bytes that create() needs for a team of `threads`, the caller included. 0 for 0 or 1 thread.
  static size_t bytes(size_t threads);

  /// Places a pool in `memory`, aligned to kAlignment and of bytes(threads), and starts its
  /// threads. With 0 or 1 threads there is nothing to start: the pool is null, and null is a pool.
  /// The threads, not the caller, run only on the cores whose bit is set in `cpu_mask`; 0: on any.
  static Status create(void* memory, size_t threads, Error* error, ThreadPool** pool,
                       uint64_t cpu_mask = 0);

  /// Ends the threads; the memory is the caller's again. Null is allowed.
  static void destroy(ThreadPool* pool);

  /// The caller included.
  size_t threads() const { return worker_count_ + 1; }

  /// Runs fn(context, item, worker) for every item in [0, count), worker < threads(), and returns
  /// when all are done. Items are claimed as workers become free.
  void run(size_t count, void (*fn)(void* context, size_t item, size_t worker), void* context);

 private:
  struct Worker {
    ThreadPool* pool;
    size_t index;
    pthread_t thread;
  };

  ThreadPool() = default;
  ~ThreadPool() = default;
  static void* worker_main(void* argument);
  void work(size_t index);
  void claim_items(size_t worker);
  void stop(size_t started);

  // The job. Written by the caller while no worker is inside one; read by workers that joined.
  void (*fn_)(void*, size_t, size_t) = nullptr;
  void* context_ = nullptr;
  size_t count_ = 0;
  /// The next item nobody has claimed.
  std::atomic<size_t> next_{0};

  // Guarded by mutex_. The two atomics are also watched without it, by a thread that will take the
  // mutex before it acts on what it saw.
  pthread_mutex_t mutex_;
  pthread_cond_t wake_;
  pthread_cond_t done_;
  /// Counts jobs. A worker joins each at most once.
  std::atomic<uint64_t> job_{0};
  /// Workers inside the job.
  std::atomic<size_t> inside_{0};
  /// False when the caller has found no item left: a worker that comes too late stays out.
  bool open_ = false;
  bool ending_ = false;
  size_t sleeping_ = 0;

  size_t worker_count_ = 0;
  Worker* workers_ = nullptr;
};

/// Runs fn(context, item, worker) for every item in [0, count). A null pool runs them on the
/// caller.
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
