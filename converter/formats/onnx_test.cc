// ONNX files: what an exporter wrote, and files made here that are wrong in one place.

#include "converter/formats/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "converter/convert.h"
#include "converter/formats/checkpoint.h"
#include "converter/formats/onnx_model.h"
#include "converter/importers.h"
#include "converter/passes/passes.h"
#include "converter/testing/pack_all.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

const std::string kFolder = testing::source_dir() + "/tests/formats/exported";

std::string number(uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
std::string field(uint32_t index, const std::string& bytes) {
  return number(index << 3 | 2) + number(bytes.size()) + bytes;
}
std::string field(uint32_t index, uint64_t value) { return number(index << 3) + number(value); }

std::string raw_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string tensor(const std::string& name, const std::vector<uint64_t>& shape,
                   const std::string& raw, uint64_t type = 1) {
  std::string out;
  for (const uint64_t size : shape) out += field(1, size);
  return out + field(2, type) + field(8, name) + field(9, raw);
}
std::string node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& output, const std::string& name = "",
                 const std::string& domain = "") {
  std::string out;
  for (const std::string& input : inputs) out += field(1, input);
  return out + field(2, output) + field(3, name) + field(4, op) + field(7, domain);
}
std::string file(const std::vector<std::string>& nodes, const std::vector<std::string>& tensors) {
  std::string graph;
  for (const std::string& n : nodes) graph += field(1, n);
  for (const std::string& t : tensors) graph += field(5, t);
  return field(1, 8) + field(2, "made here") + field(7, graph);
}

OnnxGraph read(const std::string& bytes) {
  return read_onnx("t.onnx", std::as_bytes(std::span(bytes)));
}

/// The message it is refused with; empty: it is not.
std::string refusal(const std::string& bytes) {
  try {
    name_onnx_tensors("t.onnx", read(bytes));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The float graph with everything planned, as bytes of weights and a list of steps.
std::vector<std::byte> weights_of(const std::string& directory) {
  const Checkpoint checkpoint(directory);
  Graph graph = import_checkpoint(checkpoint, {});
  fuse(graph);
  remove_dead(graph, false);
  plan(graph);
  return testing::pack_all(graph).data;
}

TEST(Onnx, AnExportedModelIsTheOneItWasMadeFrom) {
  EXPECT_EQ(weights_of(kFolder + "/bert.onnx"), weights_of(kFolder + "/bert"));
  const Checkpoint checkpoint(kFolder + "/bert.onnx");
  EXPECT_EQ(checkpoint.model_type(), "bert");
  EXPECT_EQ(checkpoint.size("num_attention_heads", 1, 100), 2u);
  EXPECT_FLOAT_EQ(static_cast<float>(checkpoint.number("layer_norm_eps", 0, 1, 0)), 1e-6f);
  ASSERT_EQ(checkpoint.notes().size(), 2u);
  EXPECT_THAT(checkpoint.notes()[1],
              HasSubstr("there is no config.json; by its tensors and operations the model is bert "
                        "with hidden_act \"gelu\", hidden_size 8,"));
}

TEST(Onnx, AConfigBesideItIsReadInstead) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "onnx");
  std::filesystem::copy(kFolder + "/bert.onnx", directory / "onnx/model.onnx");
  std::filesystem::copy(kFolder + "/bert/config.json", directory / "config.json");
  // As hubs lay it out: the settings and the tokenizer are one folder above.
  EXPECT_EQ(weights_of(directory / "onnx/model.onnx"), weights_of(kFolder + "/bert"));
  std::filesystem::rename(directory / "onnx/model.onnx", directory / "model.onnx");
  EXPECT_EQ(weights_of(directory / ""), weights_of(kFolder + "/bert"));
  std::filesystem::copy(directory / "model.onnx", directory / "model_O2.onnx");
  EXPECT_EQ(weights_of(directory / ""), weights_of(kFolder + "/bert"));
}

TEST(Onnx, MatricesGetTheirNamesFromWhatUsesThem) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string bytes =
      file({node("MatMul", {"x", "onnx::MatMul_7"}, "y"), node("Add", {"a.dense.bias", "y"}, "z"),
            node("MatMul", {"x", "onnx::MatMul_8"}, "w", "/b/layer.0/key/MatMul"),
            node("Identity", {"a.dense.bias"}, "c.LayerNorm.bias")},
           {tensor("onnx::MatMul_7", {2, 3}, raw_floats(values)),
            tensor("onnx::MatMul_8", {3, 2}, raw_floats(values)),
            tensor("a.dense.bias", {3}, raw_floats({7, 8, 9})),
            tensor("constant", {}, raw_floats({2}))});
  const OnnxGraph graph = read(bytes);
  const TensorMap tensors = name_onnx_tensors("t.onnx", graph);
  std::vector<std::string> names;
  for (const auto& [name, unused] : tensors) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("a.dense.bias", "a.dense.weight", "b.layer.0.key.weight",
                                 "c.LayerNorm.bias"));
  EXPECT_THAT(tensors.at("a.dense.weight").shape, ElementsAre(3, 2));
  EXPECT_THAT(to_floats(tensors.at("a.dense.weight")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(to_floats(tensors.at("c.LayerNorm.bias")), ElementsAre(7, 8, 9));
}

TEST(Onnx, RefusesWhatItCannotRead) {
  const std::string two = raw_floats({1, 2});
  const std::string external = tensor("x", {2}, two) + field(14, uint64_t{1});
  const std::string listed = field(1, uint64_t{2}) + field(2, uint64_t{1}) + field(8, "x") +
                             field(7, uint64_t{1}) + field(7, uint64_t{2});
  struct Case {
    std::string bytes;
    const char* words;
  };
  const Case cases[] = {
      {file({node("MatMulInteger", {"a", "b"}, "c")}, {}), "t.onnx is quantised (it has MatMulInt"},
      {file({node("Attention", {"a"}, "c", "", "com.microsoft")}, {}), "optimised for one program"},
      {file({}, {external}), "tensor x is in another file (external data)"},
      {file({}, {tensor("x", {3}, two)}), "tensor x"},
      {file({}, {tensor("x", {1}, two)}), "which takes 4 bytes, and has 8"},
      {file({}, {tensor("x", {2}, two, 8)}), "tensor x has the type 8"},
      {file({}, {tensor("x", {uint64_t{1} << 62, 8}, two)}), "does not fit in 64 bits"},
      {file({}, {tensor("x", {UINT64_MAX}, two)}), "tensor x has a negative size"},
      {file({}, {listed}), "one by one; save it with raw_data"},
      {file({}, {tensor("x", {2}, two), tensor("x", {2}, two)}), "tensor x is there twice"},
      {file({node("MatMul", {"a", "m"}, "c")}, {tensor("m", {1, 2}, two)}),
       "tensor m is multiplied with, and nothing tells its name"},
      {"", "t.onnx has no graph"},
      {field(7, uint64_t{5}), "field 7 is not a string or a message"},
      {"\x3a\x7f", "bytes too early"},
      {"\x3b\x01", "is of wire type 3"},
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "more than 64 bits"},
      {std::string("\x00\x01", 2), "expected a number from 1"},
  };
  for (const Case& c : cases) EXPECT_THAT(refusal(c.bytes), HasSubstr(c.words));
}

TEST(Onnx, AFileThatIsCutOffAnywhereIsRefused) {
  const std::string whole = read_file(kFolder + "/bert.onnx");
  for (size_t size = 0; size < whole.size(); size += 97) {
    // The operations come first: what is left of the tensors then lacks some that the config needs.
    const std::string part = whole.substr(0, size);
    EXPECT_NE(refusal(part), "") << size;
  }
}

TEST(Onnx, SettingsThatTheGraphDoesNotTellAreAskedFor) {
  const std::string bytes = file({}, {tensor("encoder.weight", {2}, raw_floats({1, 2}))});
  const OnnxGraph graph = read(bytes);
  try {
    derive_onnx_config("t.onnx", graph, name_onnx_tensors("t.onnx", graph));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "t.onnx: its tensors are not those of a BERT; put the model's "
                 "config.json beside it");
  }
}

}  // namespace
}  // namespace oxbow::convert
