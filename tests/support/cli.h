#pragma once

// What the tests of the command line share.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace oxbow::testing {

using Words = std::vector<std::string>;

inline CommandResult oxbow(const Words& words) { return run_program("oxbow", words); }

/// Converts a checkpoint and returns the path of the file.
inline std::string convert(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& file, const Words& options) {
  Words words = {checkpoint.string(), "-o", file.string()};
  words.insert(words.end(), options.begin(), options.end());
  const CommandResult result = run_program("oxbow-convert", words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return file.string();
}

/// One line that says something, as every failure prints.
inline void expect_one_line(const CommandResult& result, const std::string& part) {
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("oxbow")) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "expected: " << part;
}

}  // namespace oxbow::testing
