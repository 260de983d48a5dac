// Rows of so many elements for every line of the list. Items are elements.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "ops/quantize/quantize.h"

namespace oxbow {
namespace {

void bench(benchmark::State& state, Isa isa, QuantizeKernel kernel) {
  if (!may_use(isa, false)) {
    state.SkipWithError("not on this machine");
    return;
  }
  const auto width = static_cast<size_t>(state.range(0));
  const auto groups = static_cast<size_t>(state.range(1));
  std::vector<float> x(width), scales(groups);
  for (size_t i = 0; i < width; ++i) x[i] = static_cast<float>(i % 251) - 125.0f;
  std::vector<int8_t> q(round_up(width, kI8RowAlignment));
  for (auto _ : state) {
    kernel(x.data(), width, groups, q.data(), scales.data());
    benchmark::DoNotOptimize(q.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(width));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"width", "groups"});
  bench->Args({160, 1})->Args({512, 1})->Args({512, 8})->Args({2048, 1});
}

#define OXB_KERNEL(isa, name)                                             \
  void bench_##name(benchmark::State& state) { bench(state, isa, name); } \
  BENCHMARK(bench_##name)->Apply(sizes);
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
