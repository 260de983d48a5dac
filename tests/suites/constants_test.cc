// Constants that are written down more than once: the C header's, Java's, the table of backends and the manual's.

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "host/io_file.h"
#include "host/testing/paths.h"
#include "runtime/api/oxbow.h"

namespace oxbow::testing {
namespace {

using Constants = std::map<std::string, int>;

std::string source(const std::string& path) { return read_file(source_dir() + "/" + path); }

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/|//[^\n]*)"), "");
}

/// Those of an enum of oxbow.h, without their prefix.
Constants c_enum(const std::string& name, const std::string& prefix) {
  static const std::string header = without_comments(source("runtime/api/oxbow.h"));
  const size_t begin = header.find("typedef int32_t " + name + ";\nenum {"),
               end = header.find('}', begin);
  EXPECT_NE(begin, std::string::npos) << name;
  const std::string body = header.substr(begin, end - begin);
  Constants constants;
  const std::regex line(prefix + R"(([A-Z0-9_]+) = (\d+))");
  for (std::sregex_iterator it(body.begin(), body.end(), line), last; it != last; ++it) {
    constants[(*it)[1]] = std::stoi((*it)[2]);
  }
  EXPECT_FALSE(constants.empty()) << name;
  return constants;
}

std::string java(const std::string& file) {
  return without_comments(source("android/oxbow/src/main/java/dev/oxbow/" + file));
}

/// A Java enum's constants by their order, which is what goes through JNI.
Constants java_enum(const std::string& name) {
  const std::string text = java(name + ".java");
  const size_t begin = text.find('{') + 1;
  const std::string body = text.substr(begin, text.find_first_of("};", begin) - begin);
  Constants constants;
  const std::regex word(R"([A-Z][A-Z0-9_]*)");
  for (std::sregex_iterator it(body.begin(), body.end(), word), last; it != last; ++it) {
    const int number = static_cast<int>(constants.size());
    constants[it->str()] = number;
  }
  return constants;
}

TEST(Constants, JavaHasTheBackendsAndTasksOfC) {
  EXPECT_EQ(java_enum("Pooling"), c_enum("oxb_pooling", "OXB_POOLING_"));
  EXPECT_EQ(java_enum("Backend"), c_enum("oxb_backend", "OXB_BACKEND_"));
  Constants tasks = java_enum("Task");
  EXPECT_EQ(tasks.at("UNKNOWN"), static_cast<int>(tasks.size()) - 1);
  tasks.erase("UNKNOWN");
  EXPECT_EQ(tasks, c_enum("oxb_task", "OXB_TASK_"));
}

TEST(Constants, JavaHasTheStatusCodesOfCAndItsOwnFromHundredOn) {
  Constants expected = c_enum("oxb_status", "OXB_");
  expected.erase("OK");
  const std::string text = java("OxbowException.java");
  const std::regex line(R"(public static final int ([A-Z_]+) = (\d+);)");
  Constants codes;
  for (std::sregex_iterator it(text.begin(), text.end(), line), last; it != last; ++it) {
    if (std::stoi((*it)[2]) < 100) codes[(*it)[1]] = std::stoi((*it)[2]);
  }
  EXPECT_EQ(codes, expected);
}

TEST(Constants, TheTableOfBackendsIsTheHeaders) {
  Constants table;
  std::vector<std::string> names;
#define OXB_PROCESSOR(NAME, number, name, constant) \
  table[#NAME] = number;                            \
  names.push_back(name);
#define OXB_LIBRARY(NAME, number, name, constant) OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_DEVICE(NAME, number, name, constant, driver, context) \
  OXB_PROCESSOR(NAME, number, name, constant)
#include "runtime/device/backends.inc"
  EXPECT_EQ(table, c_enum("oxb_backend", "OXB_BACKEND_"));
  const std::string manual = source("docs/backends.md");
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_STREQ(oxb_backend_name(static_cast<oxb_backend>(i)), names[i].c_str());
    EXPECT_NE(manual.find("| `" + names[i] + "` |"), std::string::npos) << names[i];
  }
  EXPECT_EQ(oxb_backend_name(static_cast<oxb_backend>(names.size())), nullptr);
}

}  // namespace
}  // namespace oxbow::testing
