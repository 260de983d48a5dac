// Depth by channels for every line of the list, so many rows at once, cut into tasks as the op does. Items are
// multiply-adds.

#include "ops/testing/bench.h"

#include <cstdint>
#include <vector>

#include "ops/linear/linear.h"
#include "ops/linear/tasks.h"

namespace oxbow {
namespace {

template <typename X, typename W>
void bench(testing::BenchRun& run, LinearKernel<X, W> kernel) {
  const size_t depth = run.arg(0), channels = run.arg(1), rows = run.arg(2);
  const size_t task = rows <= kFewRows ? channels : kTaskChannels;
  const RowTiles tiles(rows, kTaskRows);
  const size_t x_stride = sizeof(X) == 1 ? round_up(depth, kI8RowAlignment) : depth;
  const auto x = testing::bench_data<X>(rows * x_stride);
  const auto weight =
      testing::bench_data<W>(weights_before<W>(round_up(channels, kBlockRows), depth));
  const std::vector<float> scales(rows + channels, 0.01f);
  std::vector<float> y(rows * channels);
  run.measure(depth * channels * rows, [&] {
    for (size_t n = 0; n < channels; n += task) {
      for (size_t tile = 0; tile < tiles.count; ++tile) {
        const size_t m = tiles.begin(tile);
        LinearSlice<X, W> slice;
        slice.rows = tiles.height(tile);
        slice.channels = channels - n < task ? channels - n : task;
        slice.depth = depth;
        slice.x = x.data() + m * x_stride;
        slice.x_stride = x_stride;
        slice.x_scales = scales.data();
        slice.weight = weight.data() + weights_before<W>(n, depth);
        slice.weight_scales = scales.data();
        slice.y = y.data() + m * channels + n;
        slice.y_stride = channels;
        kernel(slice);
      }
    }
  });
}

testing::BenchShapes shapes() {
  constexpr int64_t kShapes[][2] = {{160, 160},  {160, 640},  {640, 160},  {256, 256},
                                    {512, 512},  {512, 2048}, {2048, 512}, {768, 768},
                                    {768, 3072}, {2048, 2048}};
  testing::BenchShapes shapes = {{"depth", "channels", "rows"}, {}};
  for (const auto& [depth, channels] : kShapes) {
    for (int64_t rows : {1, 16, 64, 256}) shapes.values.push_back({depth, channels, rows});
  }
  return shapes;
}

#define OXB_KERNEL(x, w, isa, name) OXB_BENCH(isa, name, shapes(), (bench<x, w>(run, name)))
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
