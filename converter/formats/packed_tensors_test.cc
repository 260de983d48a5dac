// Matrices that others have quantised are the floats that their libraries make of them.

#include "converter/formats/packed_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "converter/convert.h"
#include "converter/formats/checkpoint.h"
#include "converter/importers.h"
#include "converter/passes/rounding.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/json_file.h"
#include "host/safetensors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

using testing::TemporaryDirectory;

const std::string kFolder = testing::source_dir() + "/tests/formats/packed/";
const char* const kCases[] = {"awq",  "gptq",   "gptq_8bits",       "gptq_shuffled",
                              "int8", "packed", "packed_asymmetric"};

TEST(PackedTensors, AreTheFloatsOfTheirLibraries) {
  for (const std::string name : kCases) {
    const Checkpoint checkpoint(kFolder + name);
    const Safetensors expected(kFolder + name + "/expected.safetensors");
    for (const auto& [tensor, there] : expected.tensors()) {
      ASSERT_TRUE(checkpoint.has_tensor(tensor)) << name << " " << tensor;
      ASSERT_EQ(checkpoint.shape(tensor), there.shape) << name << " " << tensor;
      EXPECT_EQ(checkpoint.tensor(tensor, there.shape), expected.floats(tensor))
          << name << " " << tensor;
    }
  }
}

TEST(PackedTensors, AreImportedWithoutAnythingLeft) {
  for (const std::string name : kCases) {
    const Checkpoint checkpoint(kFolder + name);
    const Graph graph = import_checkpoint(checkpoint, {});
    EXPECT_EQ(graph.warnings, std::vector<std::string>()) << name;
    // Words, norms and matrices, as in the model they were made of.
    EXPECT_EQ(checkpoint.parameters(), 9824u) << name;
    const auto told = std::count_if(
        checkpoint.notes().begin(), checkpoint.notes().end(),
        [](const std::string& note) { return note.starts_with("7 matrices are stored in"); });
    EXPECT_EQ(told, 1) << name;
  }
}

TEST(PackedTensors, InSymmetricGroupsOf32KeepTheirCodes) {
  for (const std::string name : {"gptq", "packed"}) {
    const Safetensors expected(kFolder + name + "/expected.safetensors");
    for (const auto& [tensor, there] : expected.tensors()) {
      const std::vector<float> values = expected.floats(tensor);
      for (size_t i = 0; i < values.size(); i += kI4BlockColumns) {
        const I4Group group = round_to_i4(std::span(values).subspan(i, kI4BlockColumns));
        for (size_t j = 0; j < kI4BlockColumns; ++j) {
          // Scales of 32 bits are rounded to 16.
          const float kept = to_f32(group.scale) * static_cast<float>(group.codes[j]);
          ASSERT_NEAR(kept, values[i + j],
                      name == std::string("gptq") ? 0 : 1e-3 * std::fabs(values[i + j]))
              << name << " " << tensor;
        }
      }
    }
  }
}

/// The symmetric case of GPTQ with other zero points.
void write_asymmetric(const TemporaryDirectory& directory) {
  const std::string name = "model.safetensors", path = kFolder + "gptq/" + name;
  std::string bytes = read_file(path);
  const Safetensors file(path);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const nlohmann::json places = nlohmann::json::parse(bytes.substr(sizeof(header), header));
  std::mt19937 random(1);
  for (const auto& [tensor, stored] : file.tensors()) {
    if (!tensor.ends_with(".qzeros")) continue;
    const uint64_t first =
        sizeof(header) + header + places[tensor]["data_offsets"][0].get<uint64_t>();
    for (size_t i = 0; i < stored.bytes.size(); ++i) {
      bytes[first + i] = static_cast<char>(random() % 15 << 4 | random() % 15);
    }
  }
  testing::write_text(directory / name, bytes);
  testing::write_text(directory / "config.json", read_file(kFolder + "gptq/config.json"));
}

TEST(PackedTensors, InAsymmetricGroupsOf32KeepTheirCodesInTheFile) {
  const TemporaryDirectory directory;
  write_asymmetric(directory);
  ConvertOptions options;
  options.directory = directory.path();
  options.output = directory / "model.oxb";
  options.quantize.weights = "int4";
  options.transform = Transform{.keep_groups = true};
  options.tokenizer = "none";
  std::vector<std::string> notes;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  convert(options);
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with(
        "7 matrices have groups of 32 columns in four bits, 7 of them with mins: kept");
  }));
  const Checkpoint checkpoint(directory.path());
  const std::string file = read_file(options.output);
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  size_t found = 0;
  for (const auto& stored : describe_file(options.output).model.tensors) {
    if (stored->type != schema::DataType::I4Min) continue;
    ++found;
    const size_t width = stored->width;
    const std::vector<float> values = checkpoint.tensor(stored->name, {stored->rows, width});
    std::vector<I4MinBlock> blocks(stored->bytes / sizeof(I4MinBlock));
    std::memcpy(blocks.data(), file.data() + prefix.data_offset + stored->offset, stored->bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t row = i / width, column = i % width;
      const I4MinBlock& block = blocks[row / 8 * (width / 32) + column / 32];
      const float scale = to_f32(block.scales[row % 8]), min = to_f32(block.mins[row % 8]);
      const auto code = static_cast<float>(code_of(block, row % 8, column % 32));
      // The min is scale times zero point, rounded to 11 bits.
      ASSERT_NEAR(scale * code + min, values[i], scale / 64) << stored->name;
    }
  }
  EXPECT_EQ(found, 7u);
}

TEST(PackedTensors, ThatAreNotUnderstoodAreRefusedByName) {
  struct Case {
    const char* name;
    std::function<void(nlohmann::json&)> edit;
    const char* word;
  };
  const Case cases[] = {
      {"gptq", [](auto& c) { c["bits"] = 3; }, "bits is 3"},
      {"gptq", [](auto& c) { c["group_size"] = 0; }, "group_size is 0"},
      {"gptq", [](auto& c) { c["group_size"] = 16; }, ".scales"},
      {"gptq", [](auto& c) { c["checkpoint_format"] = "marlin"; }, "marlin"},
      {"gptq", [](auto& c) { c["bits"] = 8; }, "when it is unpacked"},
      {"awq", [](auto& c) { c["version"] = "gemv"; }, "gemv"},
      {"awq", [](auto& c) { c.erase("bits"); }, "bits is missing"},
      {"packed", [](auto& c) { c["format"] = "float-quantized"; }, "float-quantized"},
      {"packed", [](auto& c) { c["config_groups"] = nlohmann::json::object(); }, "config_groups"},
      {"packed", [](auto& c) { c["config_groups"]["group_0"]["weights"]["type"] = "float"; },
       "another type"},
      {"packed", [](auto& c) { c["config_groups"]["group_0"]["weights"]["num_bits"] = 8; },
       ".weight_shape"},
  };
  for (const Case& test : cases) {
    const TemporaryDirectory directory;
    const std::string from = kFolder + test.name;
    std::filesystem::copy(from + "/model.safetensors", directory / "model.safetensors");
    nlohmann::json config = read_json(from + "/config.json");
    test.edit(config["quantization_config"]);
    testing::write_text(directory / "config.json", config.dump());
    try {
      import_checkpoint(Checkpoint(directory / ""), {});
      ADD_FAILURE() << test.word;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(test.word), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace oxbow::convert
