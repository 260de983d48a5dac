#pragma once

// What states are, by the names importers give them, and what keeping all keys and values would cost instead.

#include <cstdint>
#include <string>

#include "schema/model_generated.h"

namespace oxbow {

enum class StateRole { kRows, kKeys, kValues };
/// "mem.layer0.k", "key.layer0" and their values; anything else is rows.
StateRole state_role(const std::string& name);

/// Bytes that each token would add to a cache of all keys and values, in the types this file stores them in. A layer with
/// several memories counts once. 0: the model has no keys.
uint64_t cache_bytes_per_token(const schema::ModelT& model);

}  // namespace oxbow
