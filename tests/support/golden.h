#pragma once

// The golden packs: checkpoints with inputs and outputs of the original implementations.

#include <filesystem>
#include <string>
#include <vector>

namespace oxbow::testing {

std::filesystem::path golden();

/// "system/case" of every folder in tests/golden, sorted.
std::vector<std::string> golden_cases();

/// The name of a test about a case: letters, digits and underscores.
std::string golden_test_name(const std::string& name);

/// Why no model produces a tensor of this name; null when one should.
const char* why_not_produced(const std::string& tensor);

}  // namespace oxbow::testing
