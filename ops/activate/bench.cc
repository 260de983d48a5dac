// Every activation over a row for every line of the list, numbered as in the schema. Items are elements.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/activate/activate.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, ActivateKernel kernel) {
  const ActivateParams params = {static_cast<Activation>(run.arg(0)), 0.5f};
  const size_t count = run.arg(1);
  const auto x = bench_data<float>(count);
  std::vector<float> y(count);
  run.measure(count, [&] { kernel(params, x.data(), count, y.data()); });
}

testing::BenchShapes shapes() {
  testing::BenchShapes shapes = {{"activation", "width"}, {}};
  for (auto activation = static_cast<int64_t>(Activation::kRelu);
       activation <= static_cast<int64_t>(Activation::kSoftCap); ++activation) {
    for (int64_t width : {160, 768, 3072}) shapes.values.push_back({activation, width});
  }
  return shapes;
}

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, shapes(), bench(run, name))
#include "ops/activate/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
