#pragma once

// Text that is safe to embed in a page or a picture.

#include <string>

namespace oxbow {

/// Any text as HTML or an attribute's value.
std::string escape(const std::string& text);

}  // namespace oxbow
