// From checkpoint to numbers: the golden packs, and models that must equal each other.

#include "converter/convert.h"

#include <gtest/gtest.h>

#include <cmath>

#include "converter/formats/checkpoint.h"
#include "converter/importers.h"
#include "converter/testing/pack_all.h"
#include "converter/testing/stream.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/page.h"
#include "host/summary.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::EditableCheckpoint;
using testing::Stream;
using testing::TemporaryDirectory;

constexpr const char* kCompressive = "labml_compressive/c1_d32_fullP";

std::string golden(const std::string& name) {
  return testing::source_dir() + "/tests/golden/" + name;
}

ConvertOptions float_options(const std::string& directory, const std::string& output) {
  ConvertOptions options;
  options.directory = directory;
  options.output = output;
  options.quantize = {.weights = "f32", .activations = false};
  return options;
}

ConvertOptions int8_options(const std::string& directory, const std::string& output) {
  ConvertOptions options = float_options(directory, output);
  options.quantize = {};
  return options;
}

/// Elements [time][b][...] of a time-major tensor.
std::vector<float> batch_element(const std::vector<float>& values, const StoredTensor& tensor,
                                 uint64_t b) {
  const uint64_t batch = tensor.shape[1];
  const uint64_t width = tensor.shape.size() > 2 ? tensor.shape[2] : 1;
  std::vector<float> out;
  for (uint64_t t = 0; t < tensor.shape[0]; ++t) {
    for (uint64_t i = 0; i < width; ++i) out.push_back(values[(t * batch + b) * width + i]);
  }
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double{a[i]} - b[i]));
  }
  return largest;
}

std::vector<int32_t> some_tokens(size_t count, uint32_t vocabulary) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<int32_t>((i * 7919 + i * i * 31) % vocabulary);
  }
  return tokens;
}

/// Logits of the same tokens in uneven segments, through all stages of the memories.
std::vector<float> stream_logits(const std::string& path) {
  Stream stream(path);
  const std::vector<int32_t> tokens = some_tokens(120, stream.info().vocabulary);
  std::vector<float> all;
  for (size_t done = 0, turn = 0; done < tokens.size(); ++turn) {
    const size_t count = std::min<size_t>(tokens.size() - done, 1 + turn * 5 % 17);
    const std::vector<float> logits = stream.run(std::span(tokens).subspan(done, count));
    all.insert(all.end(), logits.begin(), logits.end());
    done += count;
  }
  return all;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, FloatModelMatchesTheOriginalLogitsAndMemories) {
  const TemporaryDirectory directory;
  const std::string path = directory / "model.oxb";
  convert(float_options(golden(GetParam()), path));
  const Safetensors io(golden(GetParam()) + "/io.safetensors");
  const double tolerance = std::stod(io.metadata().at("atol_fp32"));
  const uint64_t batch = io.at("segment0.input_ids").shape[1];
  size_t memories = 0;
  for (uint64_t b = 0; b < batch; ++b) {
    Stream stream(path);
    for (int segment = 0;; ++segment) {
      const std::string prefix = "segment" + std::to_string(segment) + ".";
      const StoredTensor* ids = io.find(prefix + "input_ids");
      if (ids == nullptr) break;
      const std::vector<int64_t> all = io.integers(prefix + "input_ids");
      std::vector<int32_t> tokens;
      for (uint64_t t = 0; t < ids->shape[0]; ++t) {
        tokens.push_back(static_cast<int32_t>(all[t * batch + b]));
      }
      const std::vector<float> logits = stream.run(tokens);
      EXPECT_LE(largest_difference(logits, batch_element(io.floats(prefix + "logits"),
                                                         io.at(prefix + "logits"), b)),
                tolerance)
          << prefix;
      for (const auto& [name, tensor] : io.tensors()) {
        if (!name.starts_with(prefix) || name.find("mem.layer") == std::string::npos) continue;
        const auto memory = stream.read(name.substr(prefix.size()));
        ASSERT_TRUE(memory.has_value()) << name;
        EXPECT_LE(largest_difference(*memory, batch_element(io.floats(name), tensor, b)), tolerance)
            << name;
        ++memories;
      }
    }
  }
  EXPECT_GT(memories, 0u);
}

TEST_P(Golden, Int8ModelStaysCloseToTheFloatModel) {
  const TemporaryDirectory directory;
  const std::string path = directory / "model.oxb";
  convert(int8_options(golden(GetParam()), path));
  const Description d = describe_file(path);
  EXPECT_GT(std::stod(find_value(d.model.metadata->quality, "logits_cosine")), 0.999);
  EXPECT_FALSE(d.worst_weights.empty());
  for (const auto& tensor : d.model.tensors) {
    // Raw rows that nothing reads cost memory and are not there.
    EXPECT_FALSE(tensor->name.starts_with("c_mem.") && !tensor->name.ends_with(".k") &&
                 !tensor->name.ends_with(".v"))
        << tensor->name;
  }
}

TEST_P(Golden, ConvertingTwiceGivesTheSameBytes) {
  const TemporaryDirectory directory;
  convert(int8_options(golden(GetParam()), directory / "a.oxb"));
  convert(int8_options(golden(GetParam()), directory / "b.oxb"));
  EXPECT_TRUE(read_file(directory / "a.oxb") == read_file(directory / "b.oxb"));
}

INSTANTIATE_TEST_SUITE_P(Packs, Golden,
                         ::testing::Values("labml_compressive/c1_d32_fullP",
                                           "labml_compressive/c2_d96_l4_rate3",
                                           "labml_compressive/c3_d64_rate4_b3",
                                           "labml_xl/x1_d32_fullP", "labml_xl/x2_d96_l4"),
                         [](const auto& pack) {
                           std::string name = pack.param;
                           return name.substr(name.rfind('/') + 1);
                         });

TEST(Convert, MeanPoolingEqualsAConvolutionThatAverages) {
  const TemporaryDirectory directory;
  EditableCheckpoint checkpoint = EditableCheckpoint::read(golden(kCompressive));
  EditableCheckpoint pooled = checkpoint;
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.find("compress.conv") == std::string::npos) continue;
    pooled.tensors.erase(name);
    std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
    if (tensor.shape.size() != 3) continue;
    for (size_t i = 0; i < 32; ++i) {
      for (size_t a = 0; a < 2; ++a) tensor.values[(i * 32 + i) * 2 + a] = 0.5f;
    }
  }
  pooled.config["compression"] = "mean";
  checkpoint.write(directory / "conv");
  pooled.write(directory / "mean");
  convert(float_options(directory / "conv", directory / "conv.oxb"));
  convert(float_options(directory / "mean", directory / "mean.oxb"));
  EXPECT_LE(largest_difference(stream_logits(directory / "conv.oxb"),
                               stream_logits(directory / "mean.oxb")),
            1e-4);
  pooled.config["compression"] = "max";
  pooled.write(directory / "max");
  for (const bool int8 : {false, true}) {
    ConvertOptions options = float_options(directory / "max", directory / "max.oxb");
    options.quantize = {.weights = int8 ? "int8" : "f32", .activations = int8};
    convert(options);
    EXPECT_GT(largest_difference(stream_logits(directory / "mean.oxb"),
                                 stream_logits(directory / "max.oxb")),
              1e-2);
  }
}

TEST(Convert, WithoutCompressedMemoryAndRateOneItIsATransformerXl) {
  const TemporaryDirectory directory;
  EditableCheckpoint xl = EditableCheckpoint::read(golden("labml_xl/x1_d32_fullP"));
  xl.write(directory / "xl");
  xl.config["model_type"] = "labml_compressive_transformer";
  xl.config["c_mem_len"] = 0;
  xl.config["compression_rate"] = 1;
  xl.write(directory / "plain");
  for (const bool int8 : {false, true}) {
    ConvertOptions options = float_options(directory / "xl", directory / "xl.oxb");
    options.quantize = {.weights = int8 ? "int8" : "f32", .activations = int8};
    convert(options);
    options.directory = directory / "plain";
    options.output = directory / "plain.oxb";
    convert(options);
    EXPECT_EQ(stream_logits(directory / "xl.oxb"), stream_logits(directory / "plain.oxb"));
  }
}

TEST(Convert, RowsLeaveInGroupsWithoutCompressedMemory) {
  const TemporaryDirectory directory;
  EditableCheckpoint checkpoint = EditableCheckpoint::read(golden(kCompressive));
  checkpoint.config["c_mem_len"] = 0;
  checkpoint.config["compression_rate"] = 5;
  checkpoint.write(directory / "in");
  convert(float_options(directory / "in", directory / "model.oxb"));
  Stream stream(directory / "model.oxb");
  stream.run(some_tokens(9, 65));
  // Nine rows do not fit in eight: five leave.
  EXPECT_EQ(stream.read("mem.layer0")->size(), 4u * 32);
  EXPECT_FALSE(stream.read("c_mem.layer0").has_value());
}

TEST(Convert, DebugOutputsKeepHiddenStatesAndAllMemories) {
  const TemporaryDirectory directory;
  for (const bool int8 : {false, true}) {
    ConvertOptions options = float_options(golden(kCompressive), directory / "debug.oxb");
    options.quantize = {.weights = int8 ? "int8" : "f32", .activations = int8};
    // What can be looked at cannot be scaled, so that another choice may lose least.
    options.transform = Transform();
    convert(options);
    const std::vector<float> plain = stream_logits(directory / "debug.oxb");
    options.debug_outputs = true;
    convert(options);
    EXPECT_EQ(stream_logits(directory / "debug.oxb"), plain) << "looking must not change anything";
    Stream stream(directory / "debug.oxb");
    stream.run(some_tokens(5, 65));
    for (const char* name : {"hidden_states.0", "hidden_states.1", "hidden_states.2"}) {
      ASSERT_TRUE(stream.read(name).has_value()) << name;
      EXPECT_EQ(stream.read(name)->size(), 5u * 32) << name;
    }
    EXPECT_TRUE(stream.read("c_mem.layer1").has_value());
    EXPECT_TRUE(stream.read("layer0.attention").has_value());
  }
}

TEST(Convert, MaxSegmentOverridesTheCheckpoint) {
  const TemporaryDirectory directory;
  ConvertOptions options = float_options(golden(kCompressive), directory / "model.oxb");
  options.import_options.max_segment = 3;
  convert(options);
  EXPECT_EQ(describe_file(options.output).max_segment, 3u);
  const std::vector<int32_t> tokens = some_tokens(3, 65);
  Stream one(options.output);
  const std::vector<float> all = one.run(tokens);
  Stream three(options.output);
  std::vector<float> single;
  for (const int32_t token : tokens) single = three.run(std::span(&token, 1));
  EXPECT_LE(largest_difference(single, {all.end() - 65, all.end()}), 1e-4);
}

TEST(Convert, AFolderWithoutATokenizerIsWarnedOf) {
  const TemporaryDirectory directory;
  const auto warnings = [&](const std::string& tokenizer, bool is_pack) {
    testing::EditableCheckpoint::read(golden("gpt2/g1_tied")).write(directory / "in");
    if (is_pack) testing::write_text(directory / "in/io.safetensors", "");
    ConvertOptions options = float_options(directory / "in", directory / "model.oxb");
    options.tokenizer = tokenizer;
    return convert(options);
  };
  ASSERT_EQ(warnings("", false).size(), 1u);
  EXPECT_EQ(warnings("", false)[0].find("no tokenizer was found, so the file takes ids"), 0u);
  EXPECT_TRUE(warnings("none", false).empty());
  EXPECT_TRUE(warnings("", true).empty());
}

TEST(Convert, AModelTypeIsRefusedBeforeTensorsAreLookedFor) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "in/config.json", R"({"model_type": "no_such_model"})");
  try {
    convert(float_options(directory / "in", directory / "model.oxb"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("model_type no_such_model is not supported"),
              std::string::npos)
        << error.what();
  }
}

// What is the words' table by the configuration may be stored once more.
TEST(Convert, AStoredTiedHeadGivesTheSameFile) {
  const TemporaryDirectory directory;
  testing::EditableCheckpoint tied = testing::EditableCheckpoint::read(golden("gpt2/g1_tied"));
  std::vector<std::vector<std::byte>> weights;
  for (const bool stored : {false, true}) {
    if (stored) tied.tensors["lm_head.weight"] = tied.tensors.at("transformer.wte.weight");
    tied.write(directory / "in");
    Graph graph = import_checkpoint(Checkpoint(directory / "in"), {});
    remove_dead(graph, false);
    plan(graph);
    weights.push_back(testing::pack_all(graph).data);
    EXPECT_TRUE(graph.warnings.empty());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Convert, DistancesBeyondTheTableAreWarnedOf) {
  const TemporaryDirectory directory;
  ConvertOptions options =
      float_options(golden("labml_compressive/c3_d64_rate4_b3"), directory / "model.oxb");
  const std::vector<std::string> warnings = convert(options);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("P = 128"), std::string::npos);
}

TEST(Convert, CalibrationTextIsReadThroughTheTokenizer) {
  const TemporaryDirectory directory;
  nlohmann::json characters = nlohmann::json::array();
  for (int i = 0; i < 65; ++i) characters.push_back(std::string(1, static_cast<char>('0' + i)));
  testing::write_text(directory / "vocab.json", characters.dump());
  testing::write_text(directory / "text.txt", std::string(300, 'A') + "BC");
  ConvertOptions options = int8_options(golden(kCompressive), directory / "model.oxb");
  options.calibration_file = directory / "text.txt";
  EXPECT_THROW(convert(options), UsageError);
  options.tokenizer = directory / "vocab.json";
  convert(options);
  const Description d = describe_file(options.output);
  EXPECT_EQ(find_value(d.model.metadata->quality, "tokens"), "302");
  EXPECT_FALSE(find_value(d.model.metadata->quality, "perplexity").empty());
  testing::write_text(directory / "text.txt", "~~~");
  EXPECT_THROW(convert(options), InputError);
}

TEST(Convert, TheReportHoldsTheFileAndEscapesItsNames) {
  const TemporaryDirectory directory;
  EditableCheckpoint checkpoint = EditableCheckpoint::read(golden(kCompressive));
  checkpoint.config["licence"] = "<script>alert(1)</script>";
  checkpoint.write(directory / "in");
  convert(int8_options(directory / "in", directory / "model.oxb"));
  const Description d = describe_file(directory / "model.oxb");
  const std::string page = to_html(page_data({}, {to_json(d)}, {}), "a&b<c>.oxb");
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("\\u003cscript>"), std::string::npos);
  EXPECT_NE(page.find("a&amp;b&lt;c&gt;.oxb"), std::string::npos);
  EXPECT_NE(page.find("hidden_states.1"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "the page must need no network";

  const nlohmann::json json = to_json(d);
  EXPECT_EQ(json["tensors"].size(), d.model.tensors.size());
  EXPECT_EQ(summary_json(d, {}, {})["bytes_after"], d.file_bytes);
  EXPECT_NE(summary_table(d).find("logits cosine"), std::string::npos);
}

TEST(Describe, ABrokenFileIsAnInputError) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "model.oxb", "OXB1 but not really");
  EXPECT_THROW(describe_file(directory / "model.oxb"), InputError);
  EXPECT_THROW(describe_file(directory / "absent.oxb"), InputError);
}

}  // namespace
}  // namespace oxbow::convert
