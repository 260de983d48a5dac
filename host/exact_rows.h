#pragma once

#include "schema/model_generated.h"

namespace oxbow {

/// Whether a run of the entry point takes exactly as many rows as it takes at most: an image, a recording, or a text
/// that is cut into groups.
bool takes_exact_rows(const schema::ModelT& model, const schema::EntryPointT& entry);

}  // namespace oxbow
