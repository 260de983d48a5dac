#pragma once

// RWKV's World vocabulary: a text file whose lines are an id, a Python literal and its number of bytes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// Whether a file of this name is one.
bool is_world_vocabulary(const std::string& name);

/// From tokens by their ids, each the bytes it stands for; empty: no token. `source` is for messages. Throws InputError.
std::unique_ptr<schema::TokenizerT> make_world_tokenizer(const std::string& source,
                                                         const std::vector<std::string>& tokens);

/// Throws InputError.
std::unique_ptr<schema::TokenizerT> read_world_vocabulary(const std::string& path,
                                                          uint32_t vocabulary);

}  // namespace oxbow::convert
