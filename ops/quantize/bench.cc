// One row, whole and in heads, for every line of the list. Items are elements.

#include "ops/testing/bench.h"

#include <cstdint>
#include <vector>

#include "ops/quantize/quantize.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, QuantizeKernel kernel) {
  const size_t width = run.arg(0), groups = run.arg(1), hadamard = run.arg(2);
  auto x = bench_data<float>(width);
  std::vector<int8_t> q(width);
  std::vector<float> scales(groups);
  run.measure(width, [&] {
    kernel(x.data(), width, {.groups = groups, .hadamard = hadamard}, q.data(), scales.data());
  });
}

// Widths are multiples of 16: there is no padding.
const testing::BenchShapes kRows = {{"width", "groups", "hadamard"},
                                    {{160, 1, 0},
                                     {160, 4, 0},
                                     {512, 1, 0},
                                     {512, 8, 0},
                                     {512, 1, 512},
                                     {576, 1, 64},
                                     {768, 1, 0},
                                     {768, 12, 0},
                                     {768, 1, 256},
                                     {3072, 1, 0}}};

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kRows, bench(run, name))
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
