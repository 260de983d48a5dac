#include "runtime/base/thread_pool.h"

#include <sched.h>
#include <signal.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"

namespace oxbow {
namespace {

// A step of a small model takes a few microseconds, less than a thread takes to fall asleep and wake
// up again. So both sides look a few microseconds before anything else, and then some fifty more, but
// each time only after offering the core to others: on a busy machine looking on would take it from
// programs with something to do, this session's own threads among them.
constexpr int kLooks = 256;
constexpr int kOffers = 64;
constexpr int kLooksPerOffer = 32;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

/// While it lives, the calling thread runs on these cores only, and so do threads it starts, for good.
class PlacedOnCores {
 public:
  explicit PlacedOnCores(uint64_t cpu_mask) {
    if (cpu_mask == 0) return;
#if defined(__linux__)
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (int core = 0; core < 64; ++core) {
      if ((cpu_mask >> core & 1) != 0) CPU_SET(core, &wanted);
    }
    placed_ = sched_getaffinity(0, sizeof(before_), &before_) == 0 &&
              sched_setaffinity(0, sizeof(wanted), &wanted) == 0;
    failure_ = placed_ ? 0 : errno;
#else
    failure_ = ENOSYS;
#endif
  }
  ~PlacedOnCores() {
#if defined(__linux__)
    if (placed_) sched_setaffinity(0, sizeof(before_), &before_);
#endif
  }
  PlacedOnCores(const PlacedOnCores&) = delete;
  PlacedOnCores& operator=(const PlacedOnCores&) = delete;

  /// An errno, or 0.
  int failure() const { return failure_; }

 private:
#if defined(__linux__)
  cpu_set_t before_;
  bool placed_ = false;
#endif
  int failure_ = 0;
};

/// Waits a little while for done() to become true.
template <typename Done>
void look_for(const Done& done) {
  for (int i = 0; i < kLooks; ++i) {
    if (done()) return;
    relax();
  }
  for (int offer = 0; offer < kOffers; ++offer) {
    sched_yield();
    for (int i = 0; i < kLooksPerOffer; ++i) {
      if (done()) return;
      relax();
    }
  }
}

}  // namespace

size_t ThreadPool::bytes(size_t threads) {
  if (threads <= 1 || threads > kMaxThreads) return 0;
  return round_up(sizeof(ThreadPool), alignof(Worker)) + (threads - 1) * sizeof(Worker);
}

Status ThreadPool::create(void* memory, size_t threads, Error* error, ThreadPool** pool,
                          uint64_t cpu_mask) {
  *pool = nullptr;
  if (threads <= 1) return Status::kOk;
  if (threads > kMaxThreads) {
    return fail(error, Status::kInvalidArgument, "%zu threads; at most %zu are supported", threads,
                kMaxThreads);
  }
  const PlacedOnCores cores(cpu_mask);
  if (cores.failure() != 0) {
    return fail(error, Status::kInvalidArgument,
                "threads cannot run on the cores of mask 0x%llx: %s",
                static_cast<unsigned long long>(cpu_mask), std::strerror(cores.failure()));
  }
  assert(reinterpret_cast<uintptr_t>(memory) % kAlignment == 0);
  auto* made = new (memory) ThreadPool();
  pthread_mutex_init(&made->mutex_, nullptr);
  pthread_cond_init(&made->wake_, nullptr);
  pthread_cond_init(&made->done_, nullptr);
  made->worker_count_ = threads - 1;
  made->workers_ = reinterpret_cast<Worker*>(static_cast<std::byte*>(memory) +
                                             round_up(sizeof(ThreadPool), alignof(Worker)));

  // Threads inherit the mask: signals stay with the application's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Some systems give a thread less stack than kernels want (docs/use-c-cpp.md).
  constexpr size_t kLeastStack = size_t{256} << 10;
  pthread_attr_t attributes;
  size_t started = 0, stack = 0;
  int failure = pthread_attr_init(&attributes);
  if (failure == 0) {
    if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < kLeastStack) {
      (void)pthread_attr_setstacksize(&attributes, kLeastStack);
    }
    for (; started < made->worker_count_; ++started) {
      auto* worker = new (&made->workers_[started]) Worker{made, started + 1, {}};
      failure = pthread_create(&worker->thread, &attributes, worker_main, worker);
      if (failure != 0) break;
    }
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure != 0) {
    made->stop(started);
    return fail(error, Status::kOutOfMemory, "cannot start thread %zu of %zu: error %d",
                started + 2, threads, failure);
  }
  *pool = made;
  return Status::kOk;
}

void ThreadPool::destroy(ThreadPool* pool) {
  if (pool != nullptr) pool->stop(pool->worker_count_);
}

void ThreadPool::stop(size_t started) {
  pthread_mutex_lock(&mutex_);
  ending_ = true;
  job_.fetch_add(1, std::memory_order_relaxed);
  pthread_cond_broadcast(&wake_);
  pthread_mutex_unlock(&mutex_);
  for (size_t i = 0; i < started; ++i) pthread_join(workers_[i].thread, nullptr);
  pthread_cond_destroy(&done_);
  pthread_cond_destroy(&wake_);
  pthread_mutex_destroy(&mutex_);
  this->~ThreadPool();
}

void* ThreadPool::worker_main(void* argument) {
  const auto* worker = static_cast<const Worker*>(argument);
  worker->pool->work(worker->index);
  return nullptr;
}

void ThreadPool::work(size_t index) {
  uint64_t seen = 0;
  while (true) {
    look_for([&] { return job_.load(std::memory_order_relaxed) != seen; });
    pthread_mutex_lock(&mutex_);
    while (job_.load(std::memory_order_relaxed) == seen) {
      ++sleeping_;
      pthread_cond_wait(&wake_, &mutex_);
      --sleeping_;
    }
    seen = job_.load(std::memory_order_relaxed);
    const bool ending = ending_;
    const bool join = open_ && !ending;
    if (join) inside_.fetch_add(1, std::memory_order_relaxed);
    pthread_mutex_unlock(&mutex_);
    if (ending) return;
    if (!join) continue;

    claim_items(index);

    pthread_mutex_lock(&mutex_);
    if (inside_.fetch_sub(1, std::memory_order_relaxed) == 1) pthread_cond_signal(&done_);
    pthread_mutex_unlock(&mutex_);
  }
}

void ThreadPool::claim_items(size_t worker) {
  for (size_t item = next_.fetch_add(1, std::memory_order_relaxed); item < count_;
       item = next_.fetch_add(1, std::memory_order_relaxed)) {
    fn_(context_, item, worker);
  }
}

void ThreadPool::run(size_t count, void (*fn)(void*, size_t, size_t), void* context) {
  if (count <= 1) {
    if (count == 1) fn(context, 0, 0);
    return;
  }
  pthread_mutex_lock(&mutex_);
  assert(!open_ && "parallel_for inside parallel_for, or from two threads");
  fn_ = fn;
  context_ = context;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  open_ = true;
  job_.fetch_add(1, std::memory_order_relaxed);
  if (sleeping_ != 0) {
    // The caller takes one item; more helpers than the rest has items would wake up for nothing.
    if (count - 1 >= sleeping_) {
      pthread_cond_broadcast(&wake_);
    } else {
      for (size_t i = 1; i < count; ++i) pthread_cond_signal(&wake_);
    }
  }
  pthread_mutex_unlock(&mutex_);

  claim_items(0);

  look_for([&] { return inside_.load(std::memory_order_relaxed) == 0; });
  pthread_mutex_lock(&mutex_);
  open_ = false;
  while (inside_.load(std::memory_order_relaxed) != 0) pthread_cond_wait(&done_, &mutex_);
  pthread_mutex_unlock(&mutex_);
}

void parallel_for(ThreadPool* pool, size_t count, void (*fn)(void*, size_t, size_t),
                  void* context) {
  if (pool != nullptr) {
    pool->run(count, fn, context);
    return;
  }
  for (size_t item = 0; item < count; ++item) fn(context, item, 0);
}

}  // namespace oxbow
