// The logits of one head or cluster for every line of the list. Items are elements.

#include "ops/testing/bench.h"

#include <vector>

#include "ops/adaptive_softmax/adaptive_softmax.h"

namespace oxbow {
namespace {

using testing::bench_data;
using testing::BenchRun;

void bench(BenchRun& run, AdaptiveSoftmaxKernel kernel) {
  const size_t words = run.arg(0);
  const auto x = bench_data<float>(words);
  std::vector<float> y(words);
  run.measure(words, [&] { kernel(x.data(), words, -1.0f, y.data()); });
}

const testing::BenchShapes kVocabularies = {{"words"}, {{256}, {8192}, {50257}}};

#define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kVocabularies, bench(run, name))
#include "ops/adaptive_softmax/kernels.inc"
#undef OXB_KERNEL

}  // namespace
}  // namespace oxbow
