#pragma once

// A feed-forward half that is one of several experts, chosen by each row (Shazeer 2017, Fedus 2021).

#include <cstdint>
#include <string>

#include "converter/blocks/parts.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct Experts {
  /// 0: there are none.
  uint32_t count = 0;
  uint32_t width = 0, inner = 0;
  /// Rows of a run that one expert takes; what comes later gives zeros. 0: all.
  uint32_t capacity = 0;
  schema::Activation activation = schema::Activation::Relu;
  bool router_bias = true, bias = true;
  /// Its output is multiplied by its probability.
  bool scaled = true;
  /// Names behind the layer's prefix. An expert's number stands between `expert` and its two layers.
  std::string router, expert, up, down;
};

struct ExpertsOutput {
  uint32_t y;
  /// See GraphBuilder::Route.
  uint32_t chosen;
};

ExpertsOutput add_experts(const Checkpoint& checkpoint, const Experts& experts,
                          const std::string& name, const std::string& prefix, uint32_t x,
                          GraphBuilder& builder, Parts& parts);

}  // namespace oxbow::convert
