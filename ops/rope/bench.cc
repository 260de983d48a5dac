// One row of eight heads for every line of the list, all elements turned. Items are elements.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "ops/rope/rope.h"

namespace oxbow {
namespace {

void bench(benchmark::State& state, Isa isa, RopeKernel kernel) {
  if (!may_use(isa, false)) {
    state.SkipWithError("not on this machine");
    return;
  }
  RopeParams params;
  params.heads = 8;
  params.head_width = params.turned = static_cast<size_t>(state.range(0));
  params.adjacent = state.range(1) != 0;
  const size_t width = params.heads * params.head_width;
  const std::vector<float> x(width, 1.5f), angles(params.turned, 0.6f);
  std::vector<float> y(width);
  for (auto _ : state) {
    kernel(x.data(), angles.data(), params, y.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(width));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"head_width", "adjacent"});
  bench->Args({64, 0})->Args({64, 1})->Args({128, 0})->Args({128, 1});
}

#define OXB_KERNEL(isa, name)                                             \
  void bench_##name(benchmark::State& state) { bench(state, isa, name); } \
  BENCHMARK(bench_##name)->Apply(sizes);
#include "ops/rope/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
