// The heads of one row for every line of the list. Items are elements.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/rope/rope.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, RopeKernel kernel) {
  const RopeParams params = {run.arg(0), run.arg(1), run.arg(1), run.arg(2) != 0};
  const size_t width = params.heads * params.head_width;
  const auto x = bench_data<float>(width), angles = bench_data<float>(params.turned);
  std::vector<float> y(width);
  run.measure(width, [&] { kernel(x.data(), angles.data(), params, y.data()); });
}

const testing::BenchShapes kHeads = {
    {"heads", "head", "adjacent"},
    {{4, 40, 0}, {8, 64, 0}, {8, 64, 1}, {16, 128, 0}, {16, 128, 1}}};

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kHeads, bench(run, name))
#include "ops/rope/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
