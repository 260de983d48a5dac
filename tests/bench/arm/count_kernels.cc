// Runs kernels of the lists for count_plugin.c to count their instructions.
//
//   oxbow_count_kernels --list     names of all kernels with their shapes, of those this core can run
//   oxbow_count_kernels NAME...    one marked call of each; prints what it computes as "NAME ITEMS"
//
// The first marked call, "nothing 0", computes nothing: what it counts is to be taken from the others. The NAME
// "calibration" stands for a loop whose items are its instructions.

#include <cstdio>
#include <cstring>

#include "ops/testing/bench.h"
#include "tests/bench/arm/markers.h"

namespace oxbow::testing {
namespace {

class CountedRun : public BenchRun {
 public:
  CountedRun(std::vector<int64_t> args, const std::string& name)
      : BenchRun(std::move(args)), name_(name) {}
  void measure(size_t items, const std::function<void()>& call) override {
    oxbow_count_begin();
    call();
    oxbow_count_end();
    std::printf("%s %zu\n", name_.c_str(), items);
  }

 private:
  const std::string& name_;
};

template <typename Function>
void for_each_shape(const Function& function) {
  for (const Bench& bench : all_benches()) {
    if (!may_use(bench.isa, false)) continue;
    for (const std::vector<int64_t>& values : bench.shapes.values) {
      function(bench, values, shape_name(bench, values));
    }
  }
}

void calibrate() {
  static const std::string name = "calibration";
  CountedRun(std::vector<int64_t>(), name).measure(1 + 2 * 1000, [] {
#if defined(__aarch64__)
    asm volatile("mov x9, #1000\n0: subs x9, x9, #1\n b.ne 0b" ::: "x9", "cc");
#else
    asm volatile("mov r3, #1000\n0: subs r3, r3, #1\n bne 0b" ::: "r3", "cc");
#endif
  });
}

bool run(const char* wanted) {
  if (std::strcmp(wanted, "calibration") == 0) {
    calibrate();
    return true;
  }
  bool found = false;
  for_each_shape(
      [&](const Bench& bench, const std::vector<int64_t>& values, const std::string& name) {
        if (name != wanted) return;
        CountedRun counted(values, name);
        bench.run(counted);
        found = true;
      });
  if (!found) std::fprintf(stderr, "oxbow_count_kernels: this core runs no '%s'\n", wanted);
  return found;
}

}  // namespace
}  // namespace oxbow::testing

int main(int argc, char** argv) {
  using namespace oxbow::testing;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for_each_shape([](const Bench&, const std::vector<int64_t>&, const std::string& name) {
      std::printf("%s\n", name.c_str());
    });
    return 0;
  }
  const std::string nothing = "nothing";
  CountedRun(std::vector<int64_t>(), nothing).measure(0, [] {});
  for (int i = 1; i < argc; ++i) {
    if (!run(argv[i])) return 1;
  }
}
