#pragma once

// How much a converted model differs from its float version, measured by running both.

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "converter/measure/model_runner.h"

namespace oxbow::convert {

/// Feeds both files, as assembled, the same tokens and compares all logits. The result is what goes
/// into the metadata: names and printed numbers. Throws InputError when the text cannot be encoded.
std::map<std::string, std::string> measure_quality(std::span<const std::byte> float_file,
                                                   std::span<const std::byte> file,
                                                   const TokenSource& source);

}  // namespace oxbow::convert
