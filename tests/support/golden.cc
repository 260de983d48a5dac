#include "tests/support/golden.h"

#include <algorithm>
#include <cctype>

namespace oxbow::testing {
namespace {

struct NotProduced {
  /// How the name ends.
  const char* ending;
  const char* reason;
};

constexpr NotProduced kNotProduced[] = {
    {".ar_loss", "a loss of training, which needs the rows that were compressed"},
    {"cache_sizes", "how the original sized its caches; the converter does it by itself"},
    {"trim_lens", "how much of its caches the original skips; the result is the same"},
    {".rand_attn", "the blocks the original drew; the checkpoint's configuration tells them"},
};

}  // namespace

std::filesystem::path golden() { return std::filesystem::path(OXB_SOURCE_DIR) / "tests/golden"; }

std::vector<std::string> golden_cases() {
  std::vector<std::string> cases;
  for (const auto& system : std::filesystem::directory_iterator(golden())) {
    if (!system.is_directory()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(system.path())) {
      if (!std::filesystem::exists(entry.path() / "config.json")) continue;
      cases.push_back(system.path().filename().string() + "/" + entry.path().filename().string());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::string golden_test_name(const std::string& name) {
  std::string text = name;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return text;
}

const char* why_not_produced(const std::string& tensor) {
  for (const NotProduced& known : kNotProduced) {
    if (tensor.ends_with(known.ending)) return known.reason;
  }
  return nullptr;
}

}  // namespace oxbow::testing
