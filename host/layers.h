#pragma once

// Which layer the steps of a graph belong to.

#include <vector>

#include "schema/model_generated.h"

namespace oxbow {

/// Of each step, as far as names tell; -1: none. A step that tells nothing stays with the one before it when the layers
/// go on after it.
std::vector<int> step_layers(const schema::ModelT& model, const schema::EntryPointT& entry);

}  // namespace oxbow
