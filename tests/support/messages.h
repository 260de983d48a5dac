#pragma once

// What programs say.

#include <algorithm>
#include <regex>
#include <string>

namespace oxbow::testing {

/// Lines of a program's messages, but for a list of problems, whose items are indented, with the advice behind it, and for stages
/// that it tells of when they take long ("reading DIR: 4 s"): on a busy machine everything does.
inline long message_lines(const std::string& messages) {
  static const std::regex stages(
      "(^|\n)[a-z]+ [^\n]*: [0-9]+ s(?=\n)|\n  [^\n]*(?=\n)|\nremove what [^\n]*(?=\n)");
  const std::string rest = std::regex_replace(messages, stages, "");
  const long lines = std::count(rest.begin(), rest.end(), '\n');
  return rest.starts_with('\n') ? lines - 1 : lines;
}

}  // namespace oxbow::testing
