// One query of eight heads over so many keys, for every line of the list: what a decoded token costs one
// layer. Items are multiply-adds.

#include "ops/testing/bench.h"

#include <cstdint>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/key_ranges.h"

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
  AttentionShape shape;
  shape.head_width = shape.value_width = head_width;
  shape.scale = 0.125f;
  shape.key_stride = shape.value_stride = width;
  shape.scale_stride = sizeof(Element) == 1 ? kHeads : 0;
  shape.distances = relative ? keys : 0;
  AttentionTerms terms;
  if (relative) {
    terms.relative = {reinterpret_cast<const std::byte*>(table.data()),
                      scales.data(),
                      bias.data(),
                      query_bias.data(),
                      width,
                      kHeads};
    terms.kinds = 1u << static_cast<unsigned>(schema::TermKind::Relative);
  }
  const size_t scratch_bytes = attention_scratch_bytes(shape, false);
  std::vector<std::byte> memory(kHeads * scratch_bytes + kTensorAlignment);
  auto* scratch = reinterpret_cast<std::byte*>(
      round_up(reinterpret_cast<uintptr_t>(memory.data()), kTensorAlignment));
  KeyRanges<Element> ranges;
  ranges.ranges[0] = {0,      keys,  k.data(),  v.data(), scales.data(), scales.data(),
                      kNoRow, false, UINT64_MAX};
  ranges.count = 1;
  HeadTask tasks[kHeads];
  for (size_t head = 0; head < kHeads; ++head) {
    tasks[head].query.q = q.data() + head * head_width;
    tasks[head].query.position = keys - 1;
    tasks[head].query.head = head;
    tasks[head].state.scratch = scratch + head * scratch_bytes;
    tasks[head].out = out.data() + head * head_width;
    tasks[head].kv_head = head;
  }
  run.measure(keys * width * (relative ? 3 : 2), [&] {
    const PositionSpan all = {0, keys, 1};
    attend_spans<Element>(kernel, shape, terms, ranges, tasks, {&all, 1});
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
