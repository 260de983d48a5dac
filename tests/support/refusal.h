#pragma once

// What every refusal of the converter has in common, whatever the file says: exit code 3, one line, no
// file left behind, and no more memory than a good file of this size takes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "tests/support/messages.h"
#include "tests/support/process.h"

namespace oxbow::testing {

#ifdef __SANITIZE_ADDRESS__
inline constexpr uint64_t kSmallMemory = uint64_t{2} << 30;
#else
inline constexpr uint64_t kSmallMemory = uint64_t{128} << 20;
#endif

/// Runs the converter on `source`, which is in `directory` or below it. `words`: part of the message.
inline void expect_refused(const TemporaryDirectory& directory, const std::string& source,
                           const std::string& words, const std::vector<std::string>& options = {},
                           uint64_t memory = kSmallMemory) {
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
      names.insert(entry.path().string());
    }
    return names;
  };
  const std::set<std::string> before = files();
  std::vector<std::string> arguments = {source, "-o", (directory / "model.oxb").string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const uint64_t inherited = own_peak_bytes() + (uint64_t{1} << 20);
  const CommandResult result = run_program("oxbow-convert", arguments);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(message_lines(result.err), 1) << result.err;
  EXPECT_LT(result.err.size(), 2200u);
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err << "expected: " << words;
  EXPECT_EQ(result.err.find("unexpected failure"), std::string::npos) << result.err;
  EXPECT_LT(result.peak_bytes, std::max(memory, inherited)) << result.err;
  EXPECT_EQ(files(), before) << "something was left behind";
}

}  // namespace oxbow::testing
