#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace oxbow {

/// Missing when it is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace oxbow
