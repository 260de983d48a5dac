// A new op is a folder of its own, a line in the schema and a method of GraphBuilder: nothing
// else knows ops by name.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "host/testing/paths.h"

namespace oxbow {
namespace {

namespace fs = std::filesystem;

/// "file: op" of each op that a source names.
std::set<std::string> named_ops(const fs::path& root, const std::string& folder) {
  static const std::regex op("OpCode::([A-Z][a-z]\\w*)");
  std::set<std::string> found;
  for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
    const std::string name = fs::relative(file.path(), root).string();
    const std::string extension = file.path().extension().string();
    if ((extension != ".cc" && extension != ".h") || name.ends_with("test.cc")) continue;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (std::sregex_iterator it(text.begin(), text.end(), op), end; it != end; ++it) {
      found.insert(name + ": " + (*it)[1].str());
    }
  }
  return found;
}

TEST(OpNames, PassesReportsRuntimeAndToolsAskTraitsInsteadOfNamingOps) {
  std::set<std::string> found;
  for (const char* folder :
       {"runtime", "host", "tools", "converter/passes", "converter/measure", "converter/text"}) {
    found.merge(named_ops(testing::source_dir(), folder));
  }
  // The step that the pass adds.
  EXPECT_EQ(found, std::set<std::string>{"converter/passes/quantize.cc: Quantize"});
}

TEST(OpNames, AnOpIsNamedByItsFolderAndTheBuilderOnly) {
  std::set<std::string> files;
  for (const std::string& use : named_ops(testing::source_dir(), "converter")) {
    files.insert(use.substr(0, use.find(':')));
  }
  files.erase("converter/passes/quantize.cc");
  std::erase_if(files, [](const std::string& file) { return file.starts_with("converter/graph"); });
  EXPECT_EQ(files, std::set<std::string>{});

  // Below ops/: the folder of the op itself, but for a linear step, which computes what two others do.
  for (const std::string& use : named_ops(testing::source_dir(), "ops")) {
    const std::string file = use.substr(0, use.find(':'));
    if (file.starts_with("ops/testing/")) continue;
    EXPECT_TRUE(file.ends_with("/traits.cc")) << use;
  }
}

}  // namespace
}  // namespace oxbow
