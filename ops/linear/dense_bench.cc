// Whole linear steps, by our kernels and by each library of the build: depth, channels and rows. Items are
// multiply-adds. Compare in one run: --benchmark_filter=dense --benchmark_enable_random_interleaving=true
// --benchmark_repetitions=9.

#include <benchmark/benchmark.h>

#include <cstdint>

#include "ops/linear/linear.h"
#include "ops/testing/op_runner.h"

namespace oxbow {
namespace {

using testing::block_tensor;
using testing::f32_tensor;
using testing::i8_tensor;
using testing::TestTensor;

void dense(benchmark::State& state, Backend backend, bool is_i8) {
  const auto depth = static_cast<uint32_t>(state.range(0));
  const auto channels = static_cast<uint32_t>(state.range(1));
  const auto rows = static_cast<uint32_t>(state.range(2));
  TestTensor x = is_i8 ? i8_tensor("x", rows, depth) : f32_tensor("x", rows, depth);
  TestTensor weight =
      is_i8 ? block_tensor("weight", channels, depth) : f32_tensor("weight", channels, depth);
  TestTensor bias = f32_tensor("bias", 1, channels), y = f32_tensor("y", rows, channels);
  fill_uniform(x, 1);
  fill_uniform(weight, 2);
  fill_uniform(bias, 3);
  schema::LinearOptionsT options;
  options.has_bias = true;
  if (is_i8) {
    x.static_scale = 1 / 127.0f;
    for (size_t row = 0; row < rows; ++row) x.row_scales(row)[0] = x.static_scale;
    options.output_scale = 0.5f;
  }
  testing::OpRunner op(bind_linear);
  op.reference_only = false;
  op.backend = backend;
  op.inputs = {&x, &weight, &bias};
  op.outputs = {&y};
  op.options(options);
  if (op.bind() != Status::kOk) {
    state.SkipWithError(op.message());
    return;
  }
  for (auto _ : state) {
    if (op.run() != Status::kOk) state.SkipWithError(op.message());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * int64_t{depth} * channels * rows);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"depth", "channels", "rows"});
  constexpr int64_t kShapes[][2] = {{160, 640}, {512, 512}, {768, 3072}, {2048, 512}};
  for (const auto& [depth, channels] : kShapes) {
    for (int64_t rows : {1, 16, 64, 256}) bench->Args({depth, channels, rows});
  }
}

BENCHMARK_CAPTURE(dense, f32_cpu, Backend::kCpu, false)->Apply(sizes);
BENCHMARK_CAPTURE(dense, i8_static_cpu, Backend::kCpu, true)->Apply(sizes);
#if OXB_BUILD_XNNPACK
BENCHMARK_CAPTURE(dense, f32_xnnpack, Backend::kXnnpack, false)->Apply(sizes);
BENCHMARK_CAPTURE(dense, i8_static_xnnpack, Backend::kXnnpack, true)->Apply(sizes);
#endif
#if OXB_BUILD_ACL
BENCHMARK_CAPTURE(dense, f32_acl, Backend::kAcl, false)->Apply(sizes);
BENCHMARK_CAPTURE(dense, i8_static_acl, Backend::kAcl, true)->Apply(sizes);
#endif

}  // namespace
}  // namespace oxbow
