#pragma once

// Runs a parsed template.

#include <map>
#include <string>

#include "converter/text/jinja/syntax.h"

namespace oxbow::convert::jinja {

/// What the template prints when `names` are set. `meter` has counted what making them took. Throws
/// InputError.
std::string run(const Body& body, std::map<std::string, Value> names, Meter& meter);

}  // namespace oxbow::convert::jinja
