// Graphs of every architecture, changed where it may hurt: refused, or run without harm and with the results that
// model_runs.h promises. An input is a list of choices: the model, the changes, and what is done with the result.

#include "tests/fuzz/base_models.h"
#include "tests/fuzz/model_runs.h"

namespace oxbow::testing {
namespace {

/// Told at the end, and now and then: a long run may be ended from outside. Models that are made are not counted.
struct Counts {
  uint64_t made = 0, ran = 0;
  double seconds = 0;

  void tell() const {
    std::fprintf(stderr,
                 "model_graph: %llu mutants, %llu of them ran, %.0f in a second of a core\n",
                 static_cast<unsigned long long>(made), static_cast<unsigned long long>(ran),
                 seconds > 0 ? static_cast<double>(made) / seconds : 0.0);
  }
  ~Counts() { tell(); }
};
constexpr uint64_t kTellEvery = 10000;

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  static Counts counts;
  static BaseModels models;
  Choices choices({data, size});
  BaseGraph& base = models.get(choices.below(models.size()));
  broken_subject = base.name;
  const double start = cpu_seconds();
  if (open_and_check(GraphMutation(choices, base).make(), choices)) ++counts.ran;
  counts.seconds += cpu_seconds() - start;
  if (++counts.made % kTellEvery == 0) counts.tell();
  return 0;
}
