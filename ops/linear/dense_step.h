#pragma once

// A linear step in the hands of another library; see dense.h.

#include "ops/activate/activate.h"
#include "runtime/op.h"

namespace oxbow {

/// What bind_linear has checked.
struct DenseStep {
  Tensor x, weight, y;
  /// Null: none.
  const float* bias = nullptr;
  const float* residual = nullptr;
  ActivateParams activation;
  /// 0: none in the file.
  float output_scale = 0.0f;
};

/// Hands the step to the backend that the session asks for. `run` stays null when that is none or has no such
/// layer.
Status bind_dense(BindContext& context, const DenseStep& step, RunFunction* run);

}  // namespace oxbow
