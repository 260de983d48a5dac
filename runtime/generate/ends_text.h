#pragma once

// Which tokens end a text.

#include "runtime/model/model.h"
#include "schema/model_generated.h"

namespace oxbow {

inline bool ends_text(const Model& model, int32_t token) {
  const auto* generation = model.graph->generation();
  if (generation == nullptr || token < 0) return false;
  if (token == generation->end_token()) return true;
  const auto* more = generation->more_end_tokens();
  for (uint32_t i = 0; more != nullptr && i < more->size(); ++i) {
    if (more->Get(i) == token) return true;
  }
  return false;
}

}  // namespace oxbow
