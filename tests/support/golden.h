#pragma once

// The golden packs: checkpoints with inputs and outputs of the original implementations.

#include <filesystem>
#include <string>
#include <vector>

namespace oxbow::testing {

std::filesystem::path golden();

/// "system/case" of every folder in tests/golden, sorted.
std::vector<std::string> golden_cases();

/// The file of a pack, "system/case", converted with these options: once for all tests of a build, in its tree. Not for
/// tests of the conversion itself, nor for what is written to.
std::string golden_model(const std::string& name, const std::vector<std::string>& options);

/// The name of a test about a case: letters, digits and underscores.
std::string golden_test_name(const std::string& name);

/// Why no model produces a tensor of this name; null when one should.
const char* why_not_produced(const std::string& tensor);

}  // namespace oxbow::testing
