// Times of kernels: every op's bench.cc, driven by google-benchmark.

#include <benchmark/benchmark.h>

#include "ops/testing/bench.h"

namespace oxbow::testing {
namespace {

class TimedRun : public BenchRun {
 public:
  TimedRun(std::vector<int64_t> args, benchmark::State& state)
      : BenchRun(std::move(args)), state_(state) {}
  void measure(size_t items, const std::function<void()>& call) override {
    for (auto _ : state_) call();
    state_.SetItemsProcessed(state_.iterations() * static_cast<int64_t>(items));
  }

 private:
  benchmark::State& state_;
};

void register_all() {
  for (const Bench& bench : all_benches()) {
    for (const std::vector<int64_t>& values : bench.shapes.values) {
      const std::string name = shape_name(bench, values);
      benchmark::RegisterBenchmark(name.c_str(), [&bench, values](benchmark::State& state) {
        if (!may_use(bench.isa, false)) {
          state.SkipWithError("not on this machine");
          return;
        }
        TimedRun run(values, state);
        bench.run(run);
      });
    }
  }
}

}  // namespace
}  // namespace oxbow::testing

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  oxbow::testing::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
