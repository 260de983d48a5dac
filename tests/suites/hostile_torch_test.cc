// Checkpoints of torch that want to run something or lie about their sizes: exit code 3, one line that helps, and no
// file left behind.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "converter/testing/torch_bytes.h"
#include "host/testing/paths.h"
#include "tests/support/files.h"
#include "tests/support/refusal.h"

namespace oxbow::testing {
namespace {

using namespace testing;

class HostileTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ / "in");
    std::filesystem::copy(testing::source_dir() + "/tests/formats/config.json", directory_ / "in");
  }

  void expect_refused(const std::string& bytes, const std::string& words,
                      uint64_t memory = kSmallMemory) {
    std::ofstream(directory_ / "in" / "pytorch_model.bin", std::ios::binary) << bytes;
    testing::expect_refused(directory_, (directory_ / "in").string(), words, {}, memory);
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

TEST_F(HostileTorch, PlacesOutsideAreRefused) {
  const auto tensor = [](const PickledTensor& lie) {
    return torch_bytes(dict_pickle({{"w", lie.bytes()}}));
  };
  expect_refused(tensor({.offset = -1}), "size -1");
  expect_refused(tensor({.offset = 1}), "leaves its storage");
  expect_refused(tensor({.offset = INT64_MAX}), "leaves its storage");
  expect_refused(tensor({.strides = {-3, 1}}), "size -3");
  expect_refused(tensor({.strides = {INT64_MAX, 1}}), "leaves its storage");
  expect_refused(tensor({.sizes = {1 << 15, 1 << 15}, .strides = {0, 0}}), "repeated");
}

TEST_F(HostileTorch, ArchivesThatLieAreRefused) {
  const std::string pickle = dict_pickle({{"w", PickledTensor().bytes()}});
  const ZipMember good = {.name = "x/data.pkl", .data = pickle};
  const std::string numbers(24, 'a');
  // The second member's header lies in the data of the first.
  ZipMember inside = {.name = "x/data/0", .data = numbers};
  const std::string header = zip_bytes({inside}).substr(0, 30 + inside.name.size() + 24);
  ZipMember around = {.name = "x/other", .data = header};
  inside.claimed_place = 30 + static_cast<uint32_t>(around.name.size());
  expect_refused(zip_bytes({around, good, inside}), "overlap");
  expect_refused(zip_bytes({good, good}), "twice");
  expect_refused(zip_bytes({good, {.name = "x/data/0", .data = numbers, .claimed_size = 1u << 30}}),
                 "x/data/0 claims 1073741824 bytes");
  expect_refused(zip_bytes({good, {.name = "x/data/0", .data = numbers, .method = 8}}),
                 "compressed");
  expect_refused(
      zip_bytes({good, {.name = "x/data/0", .data = numbers, .claimed_place = 1u << 30}}),
      "where no member is");
  // A directory of more members than it has room for, and sizes of 64 bits.
  std::string many = zip_bytes({good});
  many.replace(many.size() - 12, 2, "\xff\xff");
  expect_refused(many, "65535 members");
  std::string wide = zip_bytes({{.name = "x/data.pkl", .data = pickle, .wide = true}});
  const size_t field = wide.rfind(little<uint16_t>(1) + little<uint16_t>(24));
  wide.replace(field + 4, 16, little(uint64_t{1} << 63) + little(uint64_t{1} << 63));
  expect_refused(wide, "claims 9223372036854775808 bytes");
}

TEST_F(HostileTorch, ProgramsThatOnlyTakeMemoryAreRefused) {
  constexpr uint64_t kLimit = kSmallMemory * 5;
  // A name of 64 MB, values without number, and lists that double without end.
  expect_refused(torch_bytes("\x80\x02" + ("c" + std::string(64 << 20, 'a'))), "name without end",
                 kLimit);
  expect_refused(torch_bytes("\x80\x02" + std::string(8 << 20, 'N') + "."), "values", kLimit);
  expect_refused(torch_bytes("\x80\x02N" + std::string(32 << 20, '2') + "."), "references", kLimit);
  std::string doubling = "\x80\x02]q";
  doubling += '\0';
  for (int i = 0; i < 40; ++i) doubling += std::string("(h\0h\0lq\0", 8);
  expect_refused(torch_bytes(doubling + "."), "does not hold a dictionary", kLimit);
}

}  // namespace
}  // namespace oxbow::testing
