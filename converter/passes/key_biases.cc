// Takes biases away from keys. A query's products with all keys grow by the same number when a row is added to all of them,
// and the softmax does not see it; but the scale of an int8 key must serve its bias too, and trained encoders have large ones.

#include <algorithm>
#include <set>

#include "converter/passes/transform.h"
#include "converter/passes/uses.h"
#include "ops/traits.h"

namespace oxbow::convert {
namespace {

/// The keys of this run and the states that hold those of earlier ones; empty where others see them or go in between.
std::set<uint32_t> keys_made_as(const Graph& graph, const Uses& uses, uint32_t fresh) {
  std::set<uint32_t> keys = {fresh};
  std::vector<uint32_t> waiting = {fresh};
  while (!waiting.empty()) {
    const uint32_t key = waiting.back();
    waiting.pop_back();
    for (const Use& reader : uses.readers(key)) {
      if (!op_traits(reader.step->op).stores_rows) continue;
      const uint32_t state = reader.step->outputs[reader.place];
      if (keys.insert(state).second) waiting.push_back(state);
    }
  }
  const auto holds_others = [&](uint32_t key) {
    if (graph.tensor(key).kind != schema::TensorKind::State) return key != fresh;
    return graph.tensor(key).initial >= 0 ||
           std::any_of(uses.writers(key).begin(), uses.writers(key).end(), [&](const Use& writer) {
             return !op_traits(writer.step->op).stores_rows ||
                    !keys.contains(writer.step->inputs[writer.place]);
           });
  };
  const auto is_told = [&](const Use& reader) {
    const OpTraits& traits = op_traits(reader.step->op);
    if (traits.stores_rows) return false;
    if (traits.head_products == nullptr) return true;
    const HeadProducts products = traits.head_products(*reader.step);
    const bool all_keys =
        std::all_of(products.inputs.begin() + 1, products.inputs.end(),
                    [&](size_t input) { return keys.contains(reader.step->inputs[input]); });
    const bool is_key = std::find(products.inputs.begin() + 1, products.inputs.end(),
                                  reader.place) != products.inputs.end();
    return !products.same_for_all || !all_keys || !is_key;
  };
  for (const uint32_t key : keys) {
    const std::vector<Use>& readers = uses.readers(key);
    if (uses.is_seen(key) || holds_others(key) ||
        std::any_of(readers.begin(), readers.end(), is_told)) {
      return {};
    }
  }
  return keys;
}

}  // namespace

size_t drop_key_biases(Graph& graph) {
  const Uses uses(graph);
  size_t count = 0;
  for (uint32_t i = 0; i < graph.model.tensors.size(); ++i) {
    schema::StepT* const step = uses.producer(i);
    if (graph.tensor(i).kind != schema::TensorKind::Activation || step == nullptr) continue;
    const auto drop_bias = op_traits(step->op).drop_bias;
    if (drop_bias == nullptr || uses.readers(i).empty()) continue;
    if (!keys_made_as(graph, uses, i).empty() && drop_bias(*step)) ++count;
  }
  return count;
}

}  // namespace oxbow::convert
