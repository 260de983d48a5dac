// Backends, which are written down more than once: their names, their numbers, the manual. Other numbers are compared by
// tests/compat/check_enums.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/io_file.h"
#include "host/testing/paths.h"
#include "runtime/api/oxbow.h"

namespace oxbow::testing {
namespace {

TEST(Constants, TheTableOfBackendsIsTheManuals) {
  std::vector<std::string> names;
#define OXB_PROCESSOR(NAME, number, name, constant) names.push_back(name);
#define OXB_LIBRARY(NAME, number, name, constant) OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_DEVICE(NAME, number, name, constant, driver, context) \
  OXB_PROCESSOR(NAME, number, name, constant)
#include "runtime/device/backends.inc"
  const std::string manual = read_file(source_dir() + "/docs/backends.md");
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_STREQ(oxb_backend_name(static_cast<oxb_backend>(i)), names[i].c_str());
    EXPECT_NE(manual.find("| `" + names[i] + "` |"), std::string::npos) << names[i];
  }
  EXPECT_EQ(oxb_backend_name(static_cast<oxb_backend>(names.size())), nullptr);
}

}  // namespace
}  // namespace oxbow::testing
