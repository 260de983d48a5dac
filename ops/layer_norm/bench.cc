// One row for every line of the list. Items are elements.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/layer_norm/layer_norm.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, LayerNormKernel kernel) {
  const size_t width = run.arg(0);
  const auto x = bench_data<float>(width), weight = x, bias = x;
  const LayerNormParams params = {weight.data(), bias.data(), 1e-5f};
  std::vector<float> y(width);
  run.measure(width, [&] { kernel(x.data(), width, params, y.data()); });
}

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, testing::kRowWidths, bench(run, name))
#include "ops/layer_norm/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
