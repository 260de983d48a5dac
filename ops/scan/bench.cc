// Every rule over a run of rows for every line of the list, numbered as in the schema. Items are elements of
// the states times rows.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/scan/scan.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, ScanKernel kernel) {
  ScanArgs args;
  args.rule = static_cast<ScanRule>(run.arg(0));
  args.rows = run.arg(1);
  args.width = run.arg(2);
  args.depth = run.arg(3);
  // Positive, as gates and time steps are; negative ones would let states grow without end.
  auto rows = bench_data<float>(args.rows * args.width);
  for (float& value : rows) value = 0.01f + value * value;
  const auto matrix = bench_data<float>(args.depth * args.width);
  std::vector<float> rates;
  for (const float value : matrix) rates.push_back(-0.01f - value * value);
  std::vector<float> y(args.rows * args.width), more = y, most = y, state = matrix;
  std::vector<float> second(args.width), third(args.width);
  for (const float*& in : args.in) in = rows.data();
  if (args.rule == ScanRule::kSelective) args.in[4] = rates.data();
  if (args.rule == ScanRule::kGatedLinear) args.in[3] = rates.data();
  if (args.rule == ScanRule::kWeightedAverage) args.in[2] = rates.data();
  args.state[0] = state.data();
  args.state[1] = second.data();
  args.state[2] = third.data();
  args.out[0] = y.data();
  args.out[1] = more.data();
  args.out[2] = most.data();
  run.measure(args.rows * args.width * args.depth, [&] {
    for (size_t begin = 0; begin < args.width; begin += kScanBlock) {
      kernel(args, begin, begin + kScanBlock < args.width ? begin + kScanBlock : args.width);
    }
  });
}

// RWKV-4 169M; Mamba 130M; RecurrentGemma 2B; the gates of xLSTM 7B.
const testing::BenchShapes kShapes = {{"rule", "rows", "width", "depth"},
                                      {{0, 1, 768, 1},
                                       {0, 64, 768, 1},
                                       {1, 1, 1536, 16},
                                       {1, 64, 1536, 16},
                                       {2, 64, 2560, 1},
                                       {3, 64, 8, 1}}};

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kShapes, bench(run, name))
#include "ops/scan/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
