#pragma once

// Builds the hash table that runtime/text/tables/merges.h searches.

#include <span>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// A table of these merges, no two of the same parts, half of its places empty.
std::vector<schema::Merge> build_merge_table(std::span<const schema::Merge> merges);

}  // namespace oxbow::convert
