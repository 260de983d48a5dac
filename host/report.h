#pragma once

// A finished file as one HTML page: no other files, no network, light and dark.

#include <string>

#include "host/describe.h"

namespace oxbow {

/// `title` is shown as given, usually the file's name.
std::string to_html(const Description& description, const std::string& title);

}  // namespace oxbow
