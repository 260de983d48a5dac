// Depth by channels for every line of the list, so many rows at once, cut into pieces as the op does. Items are
// multiply-adds.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "ops/linear/linear.h"

namespace oxbow {
namespace {

// As in linear.cc.
constexpr size_t kPieceChannels = 256;
constexpr size_t kPieceRows = 36;
constexpr size_t kFewRows = 3;

template <typename Element>
std::vector<Element> random_elements(size_t count) {
  std::vector<Element> values(count);
  uint32_t state = 1;
  for (Element& value : values) {
    state = state * 1664525u + 1013904223u;
    const int code = static_cast<int>(state >> 24) % 255 - 127;
    value = sizeof(Element) == 1 ? static_cast<Element>(code) : static_cast<Element>(code / 127.0f);
  }
  return values;
}

template <typename X, typename W>
void bench(benchmark::State& state, Isa isa, LinearKernel<X, W> kernel) {
  if (!may_use(isa, false)) {
    state.SkipWithError("not on this machine");
    return;
  }
  const auto depth = static_cast<size_t>(state.range(0));
  const auto channels = static_cast<size_t>(state.range(1));
  const auto rows = static_cast<size_t>(state.range(2));
  const size_t piece = rows <= kFewRows ? channels : kPieceChannels;
  const size_t x_stride = sizeof(X) == 1 ? round_up(depth, kI8RowAlignment) : depth;
  const size_t weight_depth = sizeof(W) == 1 ? round_up(depth, kBlockColumns) : depth;
  const auto x = random_elements<X>(rows * x_stride);
  const auto weight = random_elements<W>(round_up(channels, kBlockRows) * weight_depth);
  const std::vector<float> scales(rows + channels, 0.01f);
  std::vector<float> y(rows * channels);
  for (auto _ : state) {
    for (size_t m = 0; m < rows; m += kPieceRows) {
      for (size_t n = 0; n < channels; n += piece) {
        LinearSlice<X, W> slice;
        slice.rows = rows - m < kPieceRows ? rows - m : kPieceRows;
        slice.channels = channels - n < piece ? channels - n : piece;
        slice.depth = depth;
        slice.x = x.data() + m * x_stride;
        slice.x_stride = x_stride;
        slice.x_scales = scales.data();
        slice.weight = weight.data() + n * weight_depth;
        slice.weight_scales = scales.data();
        slice.y = y.data() + m * channels + n;
        slice.y_stride = channels;
        kernel(slice);
      }
    }
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(depth * channels * rows));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"depth", "channels", "rows"});
  constexpr int64_t kShapes[][2] = {{160, 160},  {160, 640},  {640, 160},  {256, 256},
                                    {512, 512},  {512, 2048}, {2048, 512}, {768, 768},
                                    {768, 3072}, {2048, 2048}};
  for (const auto& [depth, channels] : kShapes) {
    for (int64_t rows : {1, 16, 64, 256}) bench->Args({depth, channels, rows});
  }
}

#define OXB_KERNEL(x, w, isa, name)                                             \
  void bench_##name(benchmark::State& state) { bench<x, w>(state, isa, name); } \
  BENCHMARK(bench_##name)->Apply(sizes);
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
