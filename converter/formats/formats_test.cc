// The same model in every form a checkpoint can have; torch wrote them (tests/formats/README.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "converter/convert.h"
#include "converter/formats/torch_file.h"
#include "converter/writer.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/safetensors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

const std::string kFolder = testing::source_dir() + "/tests/formats";

struct Converted {
  std::vector<std::byte> file;
  std::vector<std::string> notes;
};

/// The whole file, except for what it says about the checkpoint's files.
Converted convert_directory(const std::string& directory, bool int8) {
  const TemporaryDirectory out;
  Converted result;
  ConvertOptions options;
  options.directory = directory;
  options.output = out / "model.oxb";
  options.quantize = {.weights = int8 ? "int8" : "f32", .activations = int8};
  // What was measured of int8 has nothing to do with the format.
  options.note = [&](const std::string& note) {
    if (!note.starts_with("int8: ")) result.notes.push_back(note);
  };
  convert(options);
  const MappedFile file(options.output);
  FilePrefix prefix;
  std::memcpy(&prefix, file.bytes().data(), sizeof(prefix));
  schema::ModelT model;
  schema::GetModel(file.bytes().data())->UnPackTo(&model);
  EXPECT_FALSE(model.metadata->source_hash.empty());
  model.metadata->source_hash.clear();
  model.metadata->sizes.clear();
  result.file = assemble_file(model, file.bytes().subspan(prefix.data_offset, prefix.data_bytes));
  return result;
}

void copy_case(const std::string& name, const std::string& to) {
  std::filesystem::copy(kFolder + "/cases/" + name, to);
  std::filesystem::copy(kFolder + "/config.json", to);
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "/cases")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Formats : public ::testing::TestWithParam<std::string> {};

TEST_P(Formats, GiveTheSameModelAsSafetensors) {
  const TemporaryDirectory directory;
  copy_case("safetensors", directory / "expected");
  copy_case(GetParam(), directory / "case");
  for (const bool int8 : {false, true}) {
    const Converted expected = convert_directory(directory / "expected", int8);
    EXPECT_THAT(expected.notes, ElementsAre());
    EXPECT_TRUE(convert_directory(directory / "case", int8).file == expected.file);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Formats, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param; });

TEST(FormatTypes, HaveTheSameValuesInEveryFormat) {
  const std::string folder = kFolder + "/types/every_type";
  const Safetensors expected(folder + ".safetensors");
  ASSERT_EQ(expected.tensors().size(), 60u);
  for (const char* ending : {".pt", "_old.pt"}) {
    const TorchFile file(folder + ending, "");
    ASSERT_EQ(file.tensors().size(), 60u) << ending;
    for (const auto& [name, want] : expected.tensors()) {
      const StoredTensor& got = file.tensors().at(name);
      EXPECT_EQ(got.describe(), want.describe()) << ending << " " << name;
      ASSERT_EQ(is_float(want.dtype), name.find('F') != std::string::npos);
      if (is_float(want.dtype)) {
        const std::vector<float> a = to_floats(got), b = to_floats(want);
        ASSERT_EQ(a.size(), b.size());
        // Bits, so that -0 is not 0.
        const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
        EXPECT_TRUE(std::ranges::equal(a, b, {}, bits, bits)) << name;
      } else {
        EXPECT_EQ(to_integers(got), to_integers(want)) << ending << " " << name;
      }
    }
  }
  EXPECT_THAT(to_integers(expected.tensors().at("I64.begin")),
              ElementsAre(0, 1, INT64_MIN, INT64_MAX));
  EXPECT_THAT(to_integers(expected.tensors().at("U8.transposed")),
              ElementsAre(0, 255, 1, 85, 0, 0));
  EXPECT_THAT(to_floats(expected.tensors().at("BF16.end")),
              ElementsAre(1.0f, -1.5f, 0x1p-14f, 65280.0f));
}

TEST(FormatNotes, TellWhatWasChosen) {
  const TemporaryDirectory directory;
  const auto notes = [&](const std::string& name) {
    copy_case(name, directory / name);
    return convert_directory(directory / name, false).notes;
  };
  EXPECT_THAT(notes("bin"), ElementsAre());
  EXPECT_THAT(notes("bin_shards"), ElementsAre());
  EXPECT_THAT(notes("fairseq"),
              ElementsAre("reading checkpoint_best.pt",
                          "checkpoint_best.pt: took the tensors of the dictionary model"));
  EXPECT_THAT(
      notes("parallel"),
      ElementsAre("reading last.ckpt", "last.ckpt: took the tensors of the dictionary state_dict",
                  "last.ckpt: left out the prefix module. of all tensor names"));
}

class FormatFiles : public ::testing::Test {
 protected:
  void SetUp() override { copy_case("safetensors", directory_ / "in"); }
  void add(const std::string& name) { testing::write_text(directory_ / ("in/" + name), "x"); }
  void copy(const std::string& from, const std::string& to) {
    std::filesystem::copy(kFolder + "/cases/" + from, directory_ / ("in/" + to));
  }
  std::vector<std::string> notes() { return convert_directory(directory_ / "in", false).notes; }
  std::string refusal() {
    try {
      notes();
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  const TemporaryDirectory directory_;
};

TEST_F(FormatFiles, AreTakenInAFixedOrderAndTheRestIsTold) {
  for (const char* name : {"optimizer.pt", "training_args.bin", "tf_model.h5", "rng_state_0.pth",
                           "flax_model.msgpack", "pytorch_model.bin.index.json", "README.md"}) {
    add(name);
  }
  const std::string not_read = "not read: README.md, flax_model.msgpack, optimizer.pt, ";
  const std::string rest = "rng_state_0.pth, tf_model.h5, training_args.bin";
  EXPECT_THAT(notes(), ElementsAre(not_read + "pytorch_model.bin.index.json, " + rest));
  copy("bin/pytorch_model.bin", "pytorch_model.bin");
  EXPECT_THAT(notes(),
              ElementsAre("reading model.safetensors",
                          not_read + "pytorch_model.bin, pytorch_model.bin.index.json, " + rest));
  std::filesystem::remove(directory_ / "in/model.safetensors");
  EXPECT_THAT(notes(), ElementsAre(not_read + "pytorch_model.bin.index.json, " + rest));
  std::filesystem::rename(directory_ / "in/pytorch_model.bin", directory_ / "in/other.pth");
  EXPECT_THAT(refusal(), HasSubstr("pytorch_model.bin.index.json is not valid JSON"));
  std::filesystem::remove(directory_ / "in/pytorch_model.bin.index.json");
  EXPECT_THAT(notes(), ElementsAre("reading other.pth", not_read + rest));
  copy("bin/pytorch_model.bin", "b.ckpt");
  EXPECT_THAT(refusal(), HasSubstr("has several tensor files: b.ckpt, other.pth; keep one"));
}

TEST_F(FormatFiles, OfSeveralDictionariesOneIsChosenByKey) {
  const TemporaryDirectory out;
  std::filesystem::remove(directory_ / "in/model.safetensors");
  copy("fairseq/checkpoint_best.pt", "model.pt");
  ConvertOptions options;
  options.directory = directory_ / "in";
  options.output = out / "model.oxb";
  options.quantize = {.weights = "f32", .activations = false};
  options.key = "model";
  convert(options);
  std::filesystem::remove(options.output);
  options.key = "extra_state";
  EXPECT_THROW(convert(options), InputError);
  EXPECT_EQ(out.file_count(), 0u);
  // Tensors that complete others may be of any format; the key is not for them.
  options.key = "";
  options.directory = directory_ / "full";
  copy_case("safetensors", options.directory);
  options.extra_tensors = kFolder + "/cases/old_bin/pytorch_model.bin";
  convert(options);
  EXPECT_EQ(out.file_count(), 1u);
}

}  // namespace
}  // namespace oxbow::convert
