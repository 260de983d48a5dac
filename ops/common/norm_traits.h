#pragma once

#include "ops/traits.h"

namespace oxbow {

/// Of a norm: the columns of weights and biases.
inline std::vector<std::vector<ScaledInput>> norm_scaled_by(const schema::StepT& step) {
  std::vector<ScaledInput> weights;
  for (size_t i = 1; i < step.inputs.size(); ++i) weights.push_back({i, ScaledInput::kColumns});
  return {weights};
}

}  // namespace oxbow
