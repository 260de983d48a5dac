// The elements of one row for every line of the list. Items are elements.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/lerp/lerp.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, LerpKernel kernel) {
  const size_t count = run.arg(0);
  const auto a = bench_data<float>(count), b = a, mix = a;
  std::vector<float> y(count);
  run.measure(count, [&] { kernel(a.data(), b.data(), mix.data(), count, y.data()); });
}

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, testing::kRowWidths, bench(run, name))
#include "ops/lerp/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
