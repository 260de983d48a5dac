#pragma once

// What the converter prints when it is done.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/describe.h"

namespace oxbow {

/// A table for a terminal, ending in a newline.
std::string summary_table(const Description& description);

/// The same for programs.
nlohmann::json summary_json(const Description& description,
                            const std::vector<std::string>& warnings,
                            const std::vector<std::string>& notes);

}  // namespace oxbow
