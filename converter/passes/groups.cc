// Finds the matrices that others have quantised to four bits in groups. Wherever they come from, Q4_0 and Q4_1 of GGUF, AWQ,
// GPTQ or compressed-tensors, they are read as floats, whose codes are found again.

#include <algorithm>

#include "converter/passes/passes.h"
#include "converter/passes/rounding.h"
#include "host/args.h"
#include "ops/traits.h"

namespace oxbow::convert {
namespace {

using Lies = bool (*)(std::span<const float> values, bool* exact);

/// One number or two lie in every grid.
bool has_three_numbers(std::span<const float> values) {
  const float first = values[0];
  const auto second =
      std::find_if(values.begin(), values.end(), [&](float value) { return value != first; });
  return std::any_of(second, values.end(),
                     [&](float value) { return value != first && value != *second; });
}

bool all_groups_lie(const Weight& weight, Lies lies, bool* exact) {
  const uint32_t step = rows_at_once(weight.width());
  bool says_something = false;
  for (uint32_t first = 0; first < weight.rows(); first += step) {
    const std::vector<float> rows = weight.read(first, std::min(step, weight.rows() - first));
    for (size_t row = 0; row < rows.size(); row += weight.width()) {
      for (size_t at = 0; at < weight.width(); at += kI4BlockColumns) {
        const size_t count = std::min<size_t>(kI4BlockColumns, weight.width() - at);
        const std::span group = std::span(rows).subspan(row + at, count);
        if (!lies(group, exact)) return false;
        says_something = says_something || has_three_numbers(group);
      }
    }
  }
  return says_something;
}

}  // namespace

FoundGroups find_groups(const Graph& graph, const std::vector<KeptWeights>& keep) {
  FoundGroups groups;
  const auto is_kept = [&](const std::string& name) {
    return std::any_of(keep.begin(), keep.end(),
                       [&](const KeptWeights& one) { return matches_pattern(one.pattern, name); });
  };
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) {
      const auto input = weight_input(op_traits(step->op));
      if (!input || (input->types & (kI4 | kI4Min)) == 0) continue;
      const auto weight = graph.weights.find(step->inputs[input->input]);
      if (weight == graph.weights.end() || graph.ternary.contains(weight->first)) continue;
      const std::string& name = graph.tensor(weight->first).name;
      if (groups.contains(name) || is_kept(name)) continue;
      FoundGroup found;
      if (!all_groups_lie(weight->second, lies_in_i4, &found.exact)) {
        found = {.has_min = true};
        if (!all_groups_lie(weight->second, lies_in_i4_min, &found.exact)) continue;
      }
      groups.emplace(name, found);
    }
  }
  return groups;
}

}  // namespace oxbow::convert
