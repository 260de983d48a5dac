// Checkpoints of torch that want to run something or lie about their sizes: exit code 3, one line that helps, and no
// file left behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "converter/testing/torch_bytes.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

using namespace convert::testing;

class HostileTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ / "in");
    std::filesystem::copy(std::string(OXB_SOURCE_DIR) + "/tests/formats/config.json",
                          directory_ / "in");
  }

  void expect_refused(const std::string& bytes, const std::string& words) {
    std::ofstream(directory_ / "in" / "pytorch_model.bin", std::ios::binary) << bytes;
    const CommandResult result = run_program(
        "oxbow-convert", {(directory_ / "in").string(), "-o", (directory_ / "model.oxb").string()});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      EXPECT_EQ(entry.path().filename(), "in") << "left behind";
    }
  }

  const TemporaryDirectory directory_;
};

TEST_F(HostileTorch, NothingInAPickleIsExecuted) {
  const std::string proof = (directory_ / "executed").string();
  const std::string argument = text("touch " + proof) + "\x85";
  const std::pair<std::string, std::string> calls[] = {
      {global("os", "system") + argument + "R", "os.system"},
      {global("posix", "system") + argument + "R", "posix.system"},
      {text("posix") + text("system") + "\x93" + argument + "R", "posix.system"},
      {"(" + text("touch " + proof) + "iposix\nsystem\n", "posix.system"},
      {"(" + global("posix", "system") + text("touch " + proof) + "o", "posix.system"},
      {global("builtins", "eval") + argument + "\x81", "builtins.eval"},
  };
  for (const auto& [call, name] : calls) {
    const std::string pickle = dict_pickle({{"w", PickledTensor().bytes()}, {"x", call}});
    expect_refused(torch_bytes(pickle), name);
    expect_refused(old_torch_bytes(pickle), name);
  }
}

TEST_F(HostileTorch, LiesAreRefused) {
  expect_refused(torch_bytes(dict_pickle(
                     {{"w", PickledTensor{.sizes = {INT64_MAX, 4}, .strides = {0, 0}}.bytes()}})),
                 "64 bits");
  expect_refused(torch_bytes(dict_pickle({{"w", PickledTensor{.elements = 1 << 30}.bytes()}})),
                 "needs a storage of 1073741824 elements");
  expect_refused(zip_bytes({{.name = "x/data.pkl", .data = "N.", .claimed_size = 0xfffffff0}}),
                 "x/data.pkl claims 4294967280 bytes");
  std::string nested = "\x80\x02";
  for (int i = 0; i < 100000; ++i) nested += ")\x85";
  expect_refused(torch_bytes(nested + "."), "does not hold a dictionary");
  const std::string good = torch_bytes(dict_pickle({{"w", PickledTensor().bytes()}}));
  expect_refused(good, "missing");
  expect_refused(good.substr(0, good.size() / 2), "cut off");
}

}  // namespace
}  // namespace oxbow::testing
