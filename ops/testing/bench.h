#pragma once

// What the benchmarks of kernels are made of. An op's bench.cc tells the shapes and what its kernels
// are called with:
//
//   void bench(BenchRun& run, AddKernel kernel) {
//     const size_t count = run.arg(0);
//     ...
//     run.measure(count, [&] { kernel(a.data(), b.data(), count, y.data()); });
//   }
//   #define OXB_KERNEL(isa, name) OXB_BENCH(isa, name, kRowWidths, bench(run, name))
//   #include "ops/add/kernels.inc"
//
// Who calls is another's matter: google-benchmark measures times (tests/bench/kernels.cc), a plugin
// of qemu counts instructions (tests/bench/arm).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/cpu.h"

namespace oxbow::testing {

/// A kernel at one shape.
class BenchRun {
 public:
  explicit BenchRun(std::vector<int64_t> args) : args_(std::move(args)) {}
  virtual ~BenchRun() = default;
  size_t arg(size_t i) const { return static_cast<size_t>(args_[i]); }
  /// Once for each shape. `items` is what one call computes: elements, or multiply-adds.
  virtual void measure(size_t items, const std::function<void()>& call) = 0;

 private:
  std::vector<int64_t> args_;
};

/// What the arguments are called, and the values to measure at.
struct BenchShapes {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> values;
};

/// For kernels of one row: a small model's width, three common ones, a feed-forward layer's.
inline const BenchShapes kRowWidths = {{"width"}, {{160}, {512}, {768}, {2048}, {3072}}};

struct Bench {
  std::string kernel;
  Isa isa;
  BenchShapes shapes;
  std::function<void(BenchRun&)> run;
};

/// As google-benchmark writes it: kernel/width:160.
inline std::string shape_name(const Bench& bench, const std::vector<int64_t>& values) {
  std::string name = bench.kernel;
  for (size_t i = 0; i < values.size(); ++i) {
    name += "/" + bench.shapes.names[i] + ":" + std::to_string(values[i]);
  }
  return name;
}

inline std::vector<Bench>& all_benches() {
  static std::vector<Bench> benches;
  return benches;
}

inline bool add_bench(Bench bench) {
  all_benches().push_back(std::move(bench));
  return true;
}

#define OXB_BENCH(isa, name, shapes, call) \
  const bool bench_##name =                \
      testing::add_bench({#name, isa, shapes, [](testing::BenchRun& run) { call; }});

/// All codes as int8, and values in [-1, 1] as float; the same on every machine.
template <typename Element>
std::vector<Element> bench_data(size_t count) {
  std::vector<Element> values(count);
  if constexpr (!std::is_arithmetic_v<Element>) {
    // Of types with few bits any bytes are codes; as F16 and BF16 these are normal numbers below 1.
    std::vector<int8_t> bytes = bench_data<int8_t>(count * sizeof(Element));
    for (int8_t& byte : bytes) byte = static_cast<int8_t>((byte & 0x1b) | 0x20);
    std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
  } else {
    uint32_t state = 1;
    for (Element& value : values) {
      state = state * 1664525u + 1013904223u;
      const int code = static_cast<int>(state >> 24) % 255 - 127;
      value =
          sizeof(Element) == 1 ? static_cast<Element>(code) : static_cast<Element>(code / 127.0f);
    }
  }
  return values;
}

}  // namespace oxbow::testing
