// So many queries of one of eight heads over so many keys, in blocks where the kernel has them: what a prompt or an
// encoder costs a head of one layer. Items are multiply-adds.

#include <cstdint>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/key_ranges.h"
#include "ops/testing/bench.h"

namespace oxbow {
namespace {

constexpr size_t kHeads = 8;

template <typename Element>
void bench(testing::BenchRun& run, const AttentionKernel<Element>& kernel) {
  const size_t head_width = run.arg(0), keys = run.arg(1), queries = run.arg(2);
  const size_t width = kHeads * head_width;
  const auto k = testing::bench_data<Element>(keys * width), v = k;
  const auto q = testing::bench_data<float>(queries * head_width);
  const std::vector<float> scales(keys * kHeads, 0.01f);
  std::vector<float> out(queries * head_width);
  AttentionShape shape;
  shape.head_width = shape.value_width = head_width;
  shape.scale = 0.125f;
  shape.key_stride = shape.value_stride = width;
  shape.scale_stride = sizeof(Element) == 1 ? kHeads : 0;
  const AttentionTerms terms;
  const size_t scratch_bytes = attention_scratch_bytes(shape, false);
  std::vector<std::byte> memory(kBlockQueries * scratch_bytes + kTensorAlignment);
  auto* scratch = reinterpret_cast<std::byte*>(
      round_up(reinterpret_cast<uintptr_t>(memory.data()), kTensorAlignment));
  KeyRanges<Element> ranges;
  ranges.ranges[0] = {0,      keys,  k.data(),  v.data(), scales.data(), scales.data(),
                      kNoRow, false, UINT64_MAX};
  ranges.count = 1;
  const bool blocks = kernel.block != nullptr;
  const size_t at_once = blocks ? kBlockQueries : 1;
  run.measure(2 * queries * keys * head_width, [&] {
    for (size_t first = 0; first < queries; first += at_once) {
      const size_t count = queries - first < at_once ? queries - first : at_once;
      HeadTask tasks[kBlockQueries];
      for (size_t i = 0; i < count; ++i) {
        tasks[i].query.q = q.data() + (first + i) * head_width;
        tasks[i].query.position = keys - 1;
        tasks[i].state.scratch = scratch + i * scratch_bytes;
        tasks[i].out = out.data() + (first + i) * head_width;
        tasks[i].to_come = keys;
      }
      const PositionSpan all = {0, keys, 1};
      attend_spans<Element>(kernel, shape, terms, ranges, {tasks, count}, {&all, 1}, blocks);
    }
  });
}

const testing::BenchShapes kShapes = {{"head", "keys", "queries"},
                                      {{32, 512, 64}, {64, 512, 64}, {64, 4096, 64}}};

#define OXB_KERNEL(element, isa, name)                    \
  const bool blocks_##name =                              \
      testing::add_bench({#name "_queries", isa, kShapes, \
                          [](testing::BenchRun& run) { bench<element>(run, name); }});
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
