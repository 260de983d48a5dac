#include "host/state_roles.h"

#include <algorithm>
#include <map>
#include <utility>

namespace oxbow {

StateRole state_role(const std::string& name) {
  if (name.ends_with(".k") || name.starts_with("key.")) return StateRole::kKeys;
  if (name.ends_with(".v") || name.starts_with("value.")) return StateRole::kValues;
  return StateRole::kRows;
}

uint64_t cache_bytes_per_token(const schema::ModelT& model) {
  // By layer and role: of several memories of a layer the one with the widest rows.
  std::map<std::pair<std::string, StateRole>, uint64_t> most;
  for (const auto& tensor : model.tensors) {
    const StateRole role = state_role(tensor->name);
    if (tensor->kind != schema::TensorKind::State || role == StateRole::kRows ||
        tensor->rows == 0) {
      continue;
    }
    const size_t layer = tensor->name.find("layer");
    std::string place = layer == std::string::npos ? tensor->name : tensor->name.substr(layer);
    if (place.ends_with(".k") || place.ends_with(".v")) place.resize(place.size() - 2);
    uint64_t& row = most[{place, role}];
    row = std::max(row, tensor->bytes / tensor->rows);
  }
  uint64_t sum = 0;
  for (const auto& [place, bytes] : most) sum += bytes;
  return sum;
}

}  // namespace oxbow
