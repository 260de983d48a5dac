// One head's columns, one token, for every line of the list: a gated delta rule. Items are multiply-adds:
// the read of what is known, the decay, the write and the read.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/recurrence/recurrence.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, RecurrenceKernel kernel) {
  const size_t keys = run.arg(0), columns = kRecurrenceColumns;
  const auto q = bench_data<float>(keys), k = q, v = bench_data<float>(columns);
  std::vector<float> state(keys * columns), y(columns);
  const float decay = 0.5f, factor = 0.5f;
  RecurrenceTile tile;
  tile.tokens = 1;
  tile.keys = keys;
  tile.columns = columns;
  tile.state = state.data();
  tile.state_stride = columns;
  tile.q = {q.data(), 0};
  tile.k = {k.data(), 0};
  tile.v = {v.data(), 0};
  tile.decay = {&decay, 0};
  tile.factor = {&factor, 0};
  tile.delta = true;
  tile.y = y.data();
  run.measure(4 * keys * columns, [&] { kernel(tile); });
}

const testing::BenchShapes kKeys = {{"keys"}, {{64}, {128}, {256}}};

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kKeys, bench(run, name))
#include "ops/recurrence/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
