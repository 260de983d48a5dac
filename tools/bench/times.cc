#include "tools/bench/times.h"

#include <algorithm>
#include <cmath>

namespace oxbow::tools {
namespace {

constexpr double kSmallest = 1e-8, kPerOctave = 8.0;

double edge(size_t index) { return kSmallest * std::exp2(static_cast<double>(index) / kPerOctave); }

}  // namespace

void Times::add(double seconds) {
  const double place = std::log2(std::max(seconds, kSmallest) / kSmallest) * kPerOctave;
  counts_[std::min(static_cast<size_t>(place), kBins - 1)] += 1;
  count_ += 1;
  largest_ = std::max(largest_, seconds);
}

double Times::percentile(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBins; ++i) {
    seen += counts_[i];
    if (seen >= wanted && seen > 0) return std::min(edge(i + 1), largest_);
  }
  return largest_;
}

Times::Bin Times::bin(size_t index) const { return {edge(index), edge(index + 1), counts_[index]}; }

size_t Times::first_bin() const {
  const auto found = std::find_if(counts_.begin(), counts_.end(), [](uint64_t n) { return n > 0; });
  return static_cast<size_t>(found - counts_.begin());
}

size_t Times::end_bin() const {
  size_t end = kBins;
  while (end > 0 && counts_[end - 1] == 0) --end;
  return end;
}

}  // namespace oxbow::tools
