#pragma once

// What the programs that run a peer's int8 matrix product share. Each is called as
//
//   PROGRAM DEPTH CHANNELS ROWS ...
//
// and makes one marked call for each three numbers, after one that is not counted: weights are packed in it. Like
// oxbow_count_kernels it prints "NAME ITEMS" for each, after a first one of nothing.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/bench/arm/markers.h"

struct Product {
  size_t depth, channels, rows;
  /// [rows][depth] and [channels][depth].
  std::vector<int8_t> x, weight;

  int32_t exact(size_t row, size_t channel) const {
    int32_t sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += x[row * depth + k] * weight[channel * depth + k];
    return sum;
  }
};

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

inline void count(const char* name, const Product& product, const std::function<void()>& call) {
  oxbow_count_begin();
  call();
  oxbow_count_end();
  std::printf("%s/depth:%zu/channels:%zu/rows:%zu %zu\n", name, product.depth, product.channels,
              product.rows, product.depth * product.channels * product.rows);
}

inline std::vector<int8_t> codes(size_t count, uint32_t seed) {
  std::vector<int8_t> values(count);
  for (int8_t& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<int8_t>(static_cast<int>(seed >> 24) % 255 - 127);
  }
  return values;
}

/// `run` must check that the peer computes the product.
inline int for_each_product(int argc, char** argv, void (*run)(const Product& product)) {
  oxbow_count_begin();
  std::function<void()>([] {})();
  oxbow_count_end();
  std::printf("nothing 0\n");
  for (int i = 1; i + 2 < argc; i += 3) {
    Product product = {};
    product.depth = static_cast<size_t>(std::atoi(argv[i]));
    product.channels = static_cast<size_t>(std::atoi(argv[i + 1]));
    product.rows = static_cast<size_t>(std::atoi(argv[i + 2]));
    product.x = codes(product.rows * product.depth, 1);
    product.weight = codes(product.channels * product.depth, 2);
    run(product);
  }
  return 0;
}
