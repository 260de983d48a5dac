// Graphs of every architecture, changed where it may hurt: refused, or run without harm and with the results that
// model_runs.h promises. An input is a list of choices: the model, the changes, and what is done with the result.

#include "tests/fuzz/base_models.h"
#include "tests/fuzz/model_runs.h"

namespace oxbow::testing {
namespace {

/// Told at the end.
struct Counts {
  uint64_t made = 0, ran = 0;
  ~Counts() {
    std::fprintf(stderr, "model_graph: %llu mutants, %llu of them ran\n",
                 static_cast<unsigned long long>(made), static_cast<unsigned long long>(ran));
  }
};

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  static Counts counts;
  static BaseModels models;
  Choices choices({data, size});
  const BaseGraph& base = models.get(choices.below(models.size()));
  broken_subject = base.name;
  const FileBytes file = GraphMutation(choices, base).make();
  ++counts.made;
  if (open_and_check({file.data(), file.size()}, choices)) ++counts.ran;
  return 0;
}
