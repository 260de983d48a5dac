#pragma once

// When activations live: what the planner places them by and what pictures of the plan show.

#include <cstdint>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow {

/// Steps during which an activation's memory is its own; both ends count.
struct Lifetime {
  uint32_t first = 0;
  uint32_t last = 0;
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// Whether the plan gives this tensor a place among the activations.
bool is_planned(const schema::TensorT& tensor);

/// Of every tensor of kind Activation and Input, by index; the others stay as constructed.
std::vector<Lifetime> lifetimes(const schema::ModelT& model);

}  // namespace oxbow
