// The gates of one row for every line of the list. Items are elements of the output.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/gru_gate/gru_gate.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, GruGateKernel kernel) {
  const size_t width = run.arg(0);
  const auto gi = bench_data<float>(3 * width), gh = gi, x = bench_data<float>(width);
  std::vector<float> y(width);
  run.measure(width, [&] { kernel(gi.data(), gh.data(), x.data(), width, y.data()); });
}

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, testing::kRowWidths, bench(run, name))
#include "ops/gru_gate/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
