#include "runtime/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

namespace oxbow {
namespace {

/// A pool in memory of exactly the size it asked for.
class PoolInMemory {
 public:
  explicit PoolInMemory(size_t threads) {
    const size_t bytes = ThreadPool::bytes(threads);
    memory_ = ::operator new (bytes, std::align_val_t{ThreadPool::kAlignment});
    Error error;
    EXPECT_EQ(ThreadPool::create(memory_, threads, &error, &pool_), Status::kOk) << error.text;
  }
  ~PoolInMemory() {
    ThreadPool::destroy(pool_);
    ::operator delete (memory_, std::align_val_t{ThreadPool::kAlignment});
  }
  PoolInMemory(const PoolInMemory&) = delete;
  PoolInMemory& operator=(const PoolInMemory&) = delete;

  ThreadPool* get() { return pool_; }

 private:
  void* memory_ = nullptr;
  ThreadPool* pool_ = nullptr;
};

TEST(ThreadPool, NullRunsInOrderOnTheCaller) {
  std::vector<size_t> items;
  parallel_for(nullptr, 4, [&](size_t item, size_t worker) {
    EXPECT_EQ(worker, 0u);
    items.push_back(item);
  });
  EXPECT_EQ(items, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(ThreadPool, OneThreadNeedsNoMemoryAndGivesNull) {
  for (size_t threads : {0, 1}) {
    EXPECT_EQ(ThreadPool::bytes(threads), 0u);
    ThreadPool* pool = nullptr;
    EXPECT_EQ(ThreadPool::create(nullptr, threads, nullptr, &pool), Status::kOk);
    EXPECT_EQ(pool, nullptr);
  }
  ThreadPool::destroy(nullptr);
}

#if defined(__linux__)
TEST(ThreadPool, ThreadsRunOnTheGivenCoresAndTheCallerStaysFree) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int allowed = 0;
  while (allowed < 64 && !CPU_ISSET(allowed, &before)) ++allowed;
  ASSERT_LT(allowed, 64);
  std::vector<uint64_t> memory(ThreadPool::bytes(3) / 8 + ThreadPool::kAlignment / 8);
  void* place = memory.data();
  size_t room = memory.size() * 8;
  ASSERT_NE(std::align(ThreadPool::kAlignment, ThreadPool::bytes(3), place, room), nullptr);
  ThreadPool* pool = nullptr;
  Error error;
  ASSERT_EQ(ThreadPool::create(place, 3, &error, &pool, uint64_t{1} << allowed), Status::kOk)
      << error.text;
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the caller was moved";
  // Until every worker has come by: an item waits for the others.
  std::atomic<int> inside{0}, elsewhere{0};
  parallel_for(pool, 3, [&](size_t, size_t worker) {
    ++inside;
    while (inside.load() < 3) sched_yield();
    cpu_set_t mine;
    sched_getaffinity(0, sizeof(mine), &mine);
    if (worker != 0 && (CPU_COUNT(&mine) != 1 || !CPU_ISSET(allowed, &mine))) ++elsewhere;
  });
  EXPECT_EQ(elsewhere.load(), 0);
  ThreadPool::destroy(pool);

  int missing = 63;
  while (missing >= 0 && CPU_ISSET(missing, &before)) --missing;
  if (missing < 0) return;
  EXPECT_EQ(ThreadPool::create(place, 3, &error, &pool, uint64_t{1} << missing),
            Status::kInvalidArgument);
  EXPECT_NE(std::string(error.text).find("mask 0x"), std::string::npos) << error.text;
}
#endif

TEST(ThreadPool, TooManyThreadsAreRefused) {
  ThreadPool* pool = nullptr;
  Error error;
  EXPECT_EQ(ThreadPool::create(nullptr, 100000, &error, &pool), Status::kInvalidArgument);
  EXPECT_STREQ(error.text, "100000 threads; at most 256 are supported");
}

class ThreadPoolSizes : public testing::TestWithParam<size_t> {};

TEST_P(ThreadPoolSizes, EveryItemRunsOnceAndWorkersAreInRange) {
  PoolInMemory pool(GetParam());
  EXPECT_EQ(pool.get()->threads(), GetParam());
  for (size_t count : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    parallel_for(pool.get(), count, [&](size_t item, size_t worker) {
      ASSERT_LT(worker, GetParam());
      runs[item].fetch_add(1);
    });
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(runs[i].load(), 1) << "item " << i << " of " << count;
  }
}

TEST_P(ThreadPoolSizes, PlainWritesAreVisibleAfterwards) {
  PoolInMemory pool(GetParam());
  std::vector<uint64_t> values(37);
  for (uint64_t round = 1; round <= 2000; ++round) {
    parallel_for(pool.get(), values.size(),
                 [&](size_t item, size_t) { values[item] += round * item; });
  }
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i * 2000 * 2001 / 2);
}

TEST_P(ThreadPoolSizes, AWorkerIsNeverInTwoItemsAtOnce) {
  PoolInMemory pool(GetParam());
  std::vector<int> busy(GetParam());  // Deliberately not atomic: the sanitizer sees any sharing.
  for (int round = 0; round < 200; ++round) {
    parallel_for(pool.get(), 50, [&](size_t, size_t worker) { ++busy[worker]; });
  }
  EXPECT_EQ(std::accumulate(busy.begin(), busy.end(), 0), 200 * 50);
}

TEST_P(ThreadPoolSizes, StartingAndEndingWithoutWorkIsFine) {
  for (int i = 0; i < 20; ++i) PoolInMemory pool(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolSizes, testing::Values(2, 3, 4, 9),
                         [](const auto& tested) { return std::to_string(tested.param); });

}  // namespace
}  // namespace oxbow
