#pragma once

// What this machine can do at most, to judge kernels by:
//
//   multiply   exact int8 products: codes widened to 16 bits, multiplied and added in pairs, summed
//              in 32 bits, all in registers. An amount is a multiply-add.
//   read1      reading memory far larger than the caches, one place after another. An amount is a
//              byte.
//   read4      the same in four streams at distant places at once

#include <cstddef>
#include <functional>
#include <string>

namespace oxbow::bench {

struct Limit {
  /// Does it once on all threads; empty when the limit is unknown.
  std::function<void()> run;
  /// Of all threads together, in one run.
  double amount = 0;
};

Limit make_limit(const std::string& name, size_t threads);

}  // namespace oxbow::bench
