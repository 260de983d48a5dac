// One query of eight heads over so many keys, for every line of the list: what a decoded token costs one
// layer. Items are multiply-adds.

#include "ops/testing/bench.h"

#include <cstdint>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/key_stream.h"

namespace oxbow {
namespace {

constexpr size_t kHeads = 8;

template <typename Element>
void bench(testing::BenchRun& run, const AttentionKernel<Element>& kernel) {
  const size_t head_width = run.arg(0), keys = run.arg(1);
  const bool relative = run.arg(2) != 0;
  const size_t width = kHeads * head_width;
  const auto k = testing::bench_data<Element>(keys * width), v = k, table = k;
  const auto q = testing::bench_data<float>(width), query_bias = q;
  const std::vector<float> scales(keys * kHeads, 0.01f), bias(keys * kHeads, 0.1f);
  std::vector<float> out(width);
  const size_t scratch_bytes = attention_scratch_bytes(head_width, false);
  std::vector<std::byte> memory(kHeads * scratch_bytes + kTensorAlignment);
  auto* scratch = reinterpret_cast<std::byte*>(
      round_up(reinterpret_cast<uintptr_t>(memory.data()), kTensorAlignment));

  AttentionShape shape;
  shape.head_width = head_width;
  shape.scale = 0.125f;
  shape.key_stride = shape.table_stride = width;
  shape.key_scale_stride = sizeof(Element) == 1 ? kHeads : 0;
  shape.table_scale_stride = shape.bias_stride = kHeads;
  shape.relative = relative;
  shape.distances = relative ? keys : 0;
  KeyPieces<Element> pieces;
  pieces.pieces[0] = {0,       keys,  k.data(),  v.data(), scales.data(), scales.data(),
                      nullptr, false, UINT64_MAX};
  pieces.count = 1;
  HeadTask<Element> tasks[kHeads];
  for (size_t head = 0; head < kHeads; ++head) {
    const size_t column = head * head_width;
    AttentionQuery<Element>& query = tasks[head].query;
    query.q = q.data() + column;
    query.slot = keys - 1;
    query.query_bias = query_bias.data() + column;
    query.table = table.data() + column;
    query.table_scales = scales.data() + head;
    query.bias = bias.data() + head;
    tasks[head].state.scratch = scratch + head * scratch_bytes;
    tasks[head].out = out.data() + column;
    tasks[head].kv_head = head;
  }
  run.measure(keys * width * (relative ? 3 : 2), [&] {
    KeyStream<Element> stream(kernel, shape, pieces, tasks);
    stream.begin();
    stream.push({0, keys, 1});
    stream.end();
  });
}

testing::BenchShapes shapes() {
  testing::BenchShapes shapes = {{"head", "keys", "relative"}, {}};
  for (int64_t head_width : {16, 64, 128}) {
    for (int64_t keys : {256, 1024, 4096}) {
      for (int64_t relative : {0, 1}) shapes.values.push_back({head_width, keys, relative});
    }
  }
  return shapes;
}

#define OXB_KERNEL(element, isa, name) OXB_BENCH(isa, name, shapes(), bench<element>(run, name))
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
