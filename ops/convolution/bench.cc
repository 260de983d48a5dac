// All taps of one row for every line of the list. Items are multiply-adds.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/convolution/convolution.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, ConvolutionKernel kernel) {
  const ConvolutionParams params = {run.arg(0), run.arg(1), run.arg(2)};
  const auto x = bench_data<float>(params.taps * params.width);
  const auto k = bench_data<float>(params.heads * params.taps);
  std::vector<float> y(params.width);
  run.measure(params.taps * params.width,
              [&] { kernel(x.data(), params.taps, k.data(), params, y.data()); });
}

// Filters shared by the channels of a head, as light-weight convolutions have them, and one for each.
const testing::BenchShapes kFilters = {{"width", "heads", "taps"},
                                       {{160, 4, 7}, {512, 8, 31}, {512, 512, 4}, {2048, 2048, 4}}};

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kFilters, bench(run, name))
#include "ops/convolution/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
