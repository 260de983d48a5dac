// Models whose results depend on the other texts of a batch, as the original computed them: they have an output and,
// under the same name, an optional input of floats, and the greatest values of all texts are what each is fed.

#include <algorithm>

#include "tools/verify/verifier.h"

namespace oxbow::tools {

void Verifier::find_batch_values() {
  for (size_t entry = 0; entry < runner_.entries().size(); ++entry) {
    if (!is_chosen(parts_.at(""), entry) || inputs_of(parts_.at(""), entry, 0).empty()) continue;
    size_t values = 0;
    for (const oxb_input_info& input : runner_.entries()[entry].inputs) {
      if (input.type != OXB_TYPE_F32 || input.required != 0 || input.own_rows == 0) continue;
      if (!runner_.produces(input.name) || parts_.at("").given.contains(input.name)) continue;
      InputRows& rows = batch_values_[input.name];
      rows.name = input.name;
      rows.rows = 1;
      rows.width = input.width;
      rows.own_rows = true;
      rows.floats.assign(input.width, 0.0f);
      values += input.width;
    }
    // A layer's values depend on those of the layers before it: one more is right each time.
    for (size_t pass = 0; pass < values && raise_batch_values(entry); ++pass) {
    }
  }
}

/// Runs all texts. False when nothing has changed.
bool Verifier::raise_batch_values(size_t entry) {
  const Part& part = parts_.at("");
  std::map<std::string, InputRows> greatest = batch_values_;
  for (auto& [name, rows] : greatest) std::fill(rows.floats.begin(), rows.floats.end(), 0.0f);
  std::set<std::string> names;
  for (const auto& [name, rows] : greatest) names.insert(name);
  const Layout layout = layout_of(part);
  for (uint64_t stream = 0; stream < layout.batch; ++stream) {
    runner_.reset();
    ProducedByName produced;
    const std::vector<InputRows> inputs = inputs_of(part, entry, stream);
    runner_.run(entry, inputs, SIZE_MAX, names, inputs[0].name, produced);
    for (auto& [name, rows] : greatest) {
      const auto found = produced.find(name);
      if (found == produced.end() || found->second.values.size() != rows.floats.size()) continue;
      std::transform(rows.floats.begin(), rows.floats.end(), found->second.values.begin(),
                     rows.floats.begin(), [](float a, float b) { return std::max(a, b); });
    }
  }
  bool changed = false;
  for (auto& [name, rows] : greatest) {
    changed = changed || rows.floats != batch_values_.at(name).floats;
  }
  batch_values_ = std::move(greatest);
  return changed;
}

}  // namespace oxbow::tools
