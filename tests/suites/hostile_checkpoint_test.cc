// Broken checkpoints and full disks: exit code 3, one line that helps, and no file left behind.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/messages.h"
#include "tests/support/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

constexpr const char* kKey = "transformer.layers.0.self_attn.key.linear.weight";

CommandResult convert(const std::filesystem::path& from, const std::filesystem::path& to) {
  return run_program("oxbow-convert", {from.string(), "-o", to.string()});
}

// Nothing but what was there before: no output, no temporary.
void expect_only(const std::filesystem::path& directory, const std::vector<std::string>& names) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end())
        << name << " was left behind";
  }
}

struct Damage {
  const char* name;
  std::function<void(TinyCheckpoint&)> edit;
  /// What the message must contain.
  std::vector<std::string> words;
};

class HostileCheckpoint : public ::testing::TestWithParam<Damage> {};

TEST_P(HostileCheckpoint, IsRefusedWithOneHelpfulLine) {
  const TemporaryDirectory directory;
  TinyCheckpoint checkpoint;
  GetParam().edit(checkpoint);
  checkpoint.write(directory / "checkpoint");
  const CommandResult result = convert(directory / "checkpoint", directory / "model.oxb");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(message_lines(result.err), 1) << result.err;
  for (const std::string& word : GetParam().words) {
    EXPECT_NE(result.err.find(word), std::string::npos) << "no '" << word << "' in: " << result.err;
  }
  expect_only(directory.path(), {"checkpoint"});
}

const Damage kDamages[] = {
    {"MissingTensor", [](TinyCheckpoint& c) { c.tensors.erase(kKey); }, {kKey, "missing"}},
    {"WrongShape",
     [](TinyCheckpoint& c) {
       c.tensors[kKey] = {{7, 8}, std::vector<float>(56)};
     },
     {kKey, "[7, 8]", "[8, 8]"}},
    {"ExtraTensor",
     [](TinyCheckpoint& c) {
       c.tensors["transformer.layers.0.gate.weight"] = {{2}, {1.0f, 2.0f}};
     },
     {"transformer.layers.0.gate.weight"}},
    {"NanWeight",
     [](TinyCheckpoint& c) { c.tensors[kKey].values[5] = std::numeric_limits<float>::quiet_NaN(); },
     {kKey, "5"}},
    {"InfiniteWeight",
     [](TinyCheckpoint& c) { c.tensors[kKey].values[6] = std::numeric_limits<float>::infinity(); },
     {kKey, "6"}},
    {"MissingConfigKey", [](TinyCheckpoint& c) { c.config.erase("heads"); }, {"heads"}},
    {"HeadsThatDoNotDivide", [](TinyCheckpoint& c) { c.config["heads"] = 3; }, {"heads", "3"}},
    {"ZeroWidth", [](TinyCheckpoint& c) { c.config["d_model"] = 0; }, {"d_model"}},
    {"NegativeMemory", [](TinyCheckpoint& c) { c.config["mem_len"] = -4; }, {"mem_len", "-4"}},
    {"HugeMemory", [](TinyCheckpoint& c) { c.config["mem_len"] = 9e18; }, {"mem_len"}},
    {"MemorySmallerThanAGroup",
     [](TinyCheckpoint& c) {
       c.config["mem_len"] = 1;
       c.config["compression_rate"] = 5;
     },
     {"mem_len"}},
    {"ZeroRate", [](TinyCheckpoint& c) { c.config["compression_rate"] = 0; }, {"compression_rate"}},
    {"UnknownArchitecture",
     [](TinyCheckpoint& c) { c.config["model_type"] = "foo"; },
     {"foo", "labml_compressive_transformer"}},
    {"NoArchitecture", [](TinyCheckpoint& c) { c.config.erase("model_type"); }, {"model_type"}},
    {"UnsupportedGate", [](TinyCheckpoint& c) { c.config["is_gated"] = true; }, {"is_gated"}},
    {"UnsupportedActivation",
     [](TinyCheckpoint& c) { c.config["activation"] = "swoosh"; },
     {"activation", "swoosh", "relu"}},
    {"WordForANumber", [](TinyCheckpoint& c) { c.config["n_layers"] = "two"; }, {"n_layers"}},
};

INSTANTIATE_TEST_SUITE_P(Damages, HostileCheckpoint, ::testing::ValuesIn(kDamages),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(HostileCheckpointFiles, BrokenFilesAreRefused) {
  const TemporaryDirectory directory;
  TinyCheckpoint().write(directory / "checkpoint");
  const std::vector<std::byte> good = read_bytes(directory / "checkpoint" / "model.safetensors");
  const auto refused = [&](const char* what) {
    const CommandResult result = convert(directory / "checkpoint", directory / "model.oxb");
    EXPECT_EQ(result.exit_code, 3) << what << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << what << ": " << result.err;
    expect_only(directory.path(), {"checkpoint"});
  };
  const auto write = [&](std::vector<std::byte> bytes) {
    write_bytes(directory / "checkpoint" / "model.safetensors", bytes);
  };
  for (const size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{100}, good.size() - 1}) {
    write({good.begin(), good.begin() + static_cast<long>(size)});
    refused("truncated");
  }
  std::vector<std::byte> huge = good;
  for (size_t i = 0; i < 8; ++i) huge[i] = static_cast<std::byte>(i == 7 ? 0x7f : 0xff);
  write(huge);
  refused("a header of 2^63 bytes");
  write(good);
  std::ofstream(directory / "checkpoint" / "config.json") << "{\"model_type\": ";
  refused("config.json cut off");
  std::ofstream(directory / "checkpoint" / "config.json") << std::string(200000, '[');
  refused("config.json nested without end");
  std::filesystem::remove(directory / "checkpoint" / "config.json");
  refused("no config.json");
  EXPECT_EQ(convert(directory / "absent", directory / "model.oxb").exit_code, 3);
}

TEST(HostileDisk, AFullDiskLeavesNothingBehindAndTheOldFileAlone) {
  const TemporaryDirectory directory;
  TinyCheckpoint().write(directory / "checkpoint");
  write_bytes(directory / "model.oxb", {std::byte{1}});
  // A limit on file size ends a write as a full disk does, with an error from write(). Children inherit it.
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 8192;
  setrlimit(RLIMIT_FSIZE, &small);
  const CommandResult result = convert(directory / "checkpoint", directory / "model.oxb");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("model.oxb"), std::string::npos) << result.err;
  EXPECT_EQ(read_bytes(directory / "model.oxb").size(), 1u) << "the old file is gone";
  expect_only(directory.path(), {"checkpoint", "model.oxb"});
}

TEST(HostileCheckpointFiles, NamesThatAreTooLongAreTold) {
  const TemporaryDirectory directory;
  TinyCheckpoint().write(directory / "checkpoint");
  const std::string name(300, 'x');
  const CommandResult none = convert(name, directory / "model.oxb");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.err.find("there is no directory or file " + name), std::string::npos) << none.err;
  const CommandResult tokenizer =
      run_program("oxbow-convert", {(directory / "checkpoint").string(), "-o",
                                    (directory / "model.oxb").string(), "--tokenizer", name});
  EXPECT_EQ(tokenizer.exit_code, 3);
  EXPECT_NE(tokenizer.err.find("cannot read "), std::string::npos) << tokenizer.err;
}

TEST(HostileDisk, AnOutputThatCannotBeWrittenIsNamed) {
  const TemporaryDirectory directory;
  TinyCheckpoint().write(directory / "checkpoint");
  const CommandResult result =
      convert(directory / "checkpoint", directory / "no" / "such" / "folder.oxb");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("folder.oxb"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace oxbow::testing
