// One row of the table for every line of the list. Items are elements.

#include "ops/testing/bench.h"

#include <cstdint>
#include <vector>

#include "ops/embedding/embedding.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

template <typename Element>
void bench(BenchRun& run, void (*kernel)(const Element*, size_t, float, float*)) {
  const size_t width = run.arg(0);
  const auto row = bench_data<Element>(width);
  std::vector<float> y(width);
  run.measure(width, [&] { kernel(row.data(), width, 0.5f, y.data()); });
}

#define OXB_KERNEL(element, isa, name) \
  OXB_BENCH(isa, name, testing::kRowWidths, bench<element>(run, name))
#include "ops/embedding/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
