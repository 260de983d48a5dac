#pragma once

// For tests that results do not depend on the number of threads.

#include <gtest/gtest.h>

#include <cstring>

#include "ops/testing/op_runner.h"

namespace oxbow::testing {

/// A pool that ends with its scope.
class Team {
 public:
  explicit Team(size_t threads) : memory_(ThreadPool::bytes(threads)) {
    Error error;
    EXPECT_EQ(ThreadPool::create(memory_.data(), threads, &error, &pool_), Status::kOk)
        << error.text;
  }
  Team(const Team&) = delete;
  ~Team() { ThreadPool::destroy(pool_); }
  ThreadPool* pool() const { return pool_; }

 private:
  Buffer memory_;
  ThreadPool* pool_ = nullptr;
};

/// Elements, padding and scales.
inline bool same_bits(const TestTensor& a, const TestTensor& b) {
  const auto same = [](const Buffer& x, const Buffer& y) {
    return x.size() == y.size() && (x.size() == 0 || !std::memcmp(x.data(), y.data(), x.size()));
  };
  return same(a.elements, b.elements) && same(a.scale_values, b.scale_values);
}

}  // namespace oxbow::testing
