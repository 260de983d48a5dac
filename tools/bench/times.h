#pragma once

// How times are distributed, in a memory that does not grow with their number.

#include <array>
#include <cstddef>
#include <cstdint>

namespace oxbow::tools {

/// Counts times in bins whose edges are 2^(1/8) apart, from 10 ns to hours: a percentile is right to 9 %. Allocates nothing.
class Times {
 public:
  static constexpr size_t kBins = 320;

  void add(double seconds);
  uint64_t count() const { return count_; }
  double largest() const { return largest_; }

  /// The time that so many of all do not exceed, 0 to 1: the upper edge of its bin, or the largest.
  double percentile(double share) const;

  struct Bin {
    double from = 0.0, to = 0.0;
    uint64_t count = 0;
  };
  Bin bin(size_t index) const;
  /// From the first bin that holds something to behind the last that does.
  size_t first_bin() const;
  size_t end_bin() const;

 private:
  std::array<uint64_t, kBins> counts_ = {};
  uint64_t count_ = 0;
  double largest_ = 0.0;
};

}  // namespace oxbow::tools
