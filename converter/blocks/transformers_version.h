#pragma once

// What one version of Hugging Face's transformers computes another way than the next.

#include "converter/formats/checkpoint.h"

namespace oxbow::convert {

/// Of the library that wrote config.json, as 100 major + minor: 442 is 4.42; 0: it does not tell.
int transformers_version(const Checkpoint& checkpoint);

/// The keys a query sees in a layer with `sliding_window`, itself among them. Before 4.42 the one at just that distance
/// was still seen.
uint32_t window_keys(const Checkpoint& checkpoint, uint32_t sliding_window);

}  // namespace oxbow::convert
