// Keys and values that are remembered in eight bits, in four (runtime/base/i4_rows.h).

#include <algorithm>
#include <set>

#include "converter/passes/passes.h"
#include "converter/passes/uses.h"
#include "ops/traits.h"
#include "runtime/base/i4_rows.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::StepT;
using schema::TensorKind;

/// No tensor: a group with it is not whole.
constexpr uint32_t kNobody = UINT32_MAX;

bool could_be(const Graph& graph, const Uses& uses, uint32_t index) {
  const schema::TensorT& tensor = graph.tensor(index);
  return tensor.kind == TensorKind::State && tensor.type == DataType::I8 && tensor.ring >= 0 &&
         tensor.initial < 0 && !uses.is_seen(index) &&
         tensor.width % (size_t{tensor.scale_groups} * kI4RowColumns) == 0 &&
         std::all_of(uses.writers(index).begin(), uses.writers(index).end(), [&](const Use& use) {
           return op_traits(use.step->op).stores_rows &&
                  graph.tensor(use.step->inputs[use.place]).type == DataType::I8;
         });
}

}  // namespace

size_t narrow_rings(Graph& graph) {
  const Uses uses(graph);
  std::set<uint32_t> chosen;
  std::vector<std::vector<uint32_t>> groups;
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) {
      const auto list = op_traits(step->op).i4_rings;
      std::set<size_t> in_groups;
      for (const auto& group : list == nullptr ? std::vector<std::vector<size_t>>{} : list(*step)) {
        std::vector<uint32_t>& tensors = groups.emplace_back();
        for (const size_t input : group) {
          tensors.push_back(step->inputs[input]);
          in_groups.insert(input);
          if (could_be(graph, uses, tensors.back())) chosen.insert(tensors.back());
        }
      }
      // Whoever reads it otherwise wants eight bits.
      for (size_t i = 0; i < step->inputs.size(); ++i) {
        if (!in_groups.contains(i)) groups.push_back({step->inputs[i], kNobody});
      }
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<uint32_t>& group : groups) {
      if (std::all_of(group.begin(), group.end(), [&](uint32_t i) { return chosen.contains(i); })) {
        continue;
      }
      for (const uint32_t tensor : group) changed |= chosen.erase(tensor) != 0;
    }
  }
  for (const uint32_t tensor : chosen) graph.tensor(tensor).type = DataType::I4Rows;
  return chosen.size();
}

}  // namespace oxbow::convert
