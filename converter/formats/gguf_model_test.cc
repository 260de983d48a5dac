// GGUF files give the same models as the checkpoints they were made from.

#include "converter/formats/gguf_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "converter/convert.h"
#include "converter/formats/checkpoint.h"
#include "converter/testing/gguf.h"
#include "converter/writer.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"
#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"

namespace oxbow::convert {
namespace {

using testing::GgufBuilder;
using testing::TemporaryDirectory;

const std::string kTests = testing::source_dir() + "/tests/";
const std::string kFolder = kTests + "formats/gguf/";

/// The file that `checkpoint` becomes, without what it says about the checkpoint.
std::vector<std::byte> converted(const std::string& checkpoint, bool int8) {
  const TemporaryDirectory directory;
  ConvertOptions options;
  options.directory = checkpoint;
  options.output = directory / "model.oxb";
  options.quantize = {.weights = int8 ? "int8" : "f32", .activations = int8};
  convert(options);
  const MappedFile file(options.output);
  FilePrefix prefix;
  std::memcpy(&prefix, file.bytes().data(), sizeof(prefix));
  schema::ModelT model;
  schema::GetModel(file.bytes().data())->UnPackTo(&model);
  EXPECT_NE(model.metadata->source_hash, "");
  model.metadata->source_hash = "";
  std::erase_if(model.metadata->sizes,
                [](const auto& size) { return size->key == "checkpoint_bytes"; });
  return assemble_file(model, file.bytes().subspan(prefix.data_offset, prefix.data_bytes));
}

struct Pair {
  const char* name;
  std::string gguf;
  std::string checkpoint;
};

class GgufModels : public ::testing::TestWithParam<Pair> {};

TEST_P(GgufModels, BecomeTheSameFilesAsTheirCheckpoints) {
  for (const bool int8 : {false, true}) {
    const std::vector<std::byte> got = converted(kFolder + GetParam().gguf, int8);
    const std::vector<std::byte> want = converted(kTests + GetParam().checkpoint, int8);
    EXPECT_TRUE(got == want) << "int8: " << int8;
  }
}

/// Of tests/formats/gguf/families.
const char* const kFamilies[] = {"bert", "bloom", "distilbert", "gemma3", "gptneox",
                                 "lfm2", "mamba", "mamba2",     "mpt",    "phi2",
                                 "phi3", "qwen2", "qwen3",      "rwkv7"};

std::vector<Pair> families() {
  std::vector<Pair> pairs;
  for (const char* name : kFamilies) {
    const std::string place = std::string("families/") + name;
    pairs.push_back({name, place + ".gguf", "formats/gguf/" + place});
  }
  return pairs;
}

INSTANTIATE_TEST_SUITE_P(Families, GgufModels, ::testing::ValuesIn(families()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    All, GgufModels,
    ::testing::Values(Pair{"Gpt2F32", "gpt2-f32.gguf", "golden/gpt2/g1_tied"},
                      Pair{"Gpt2F16", "gpt2-f16.gguf", "formats/gguf/gpt2-f16"},
                      Pair{"Gpt2BF16", "gpt2-bf16.gguf", "formats/gguf/gpt2-bf16"},
                      Pair{"Gpt2Q8_0", "gpt2-q8_0.gguf", "formats/gguf/gpt2-q8_0"},
                      Pair{"Gpt2Q4_0", "gpt2-q4_0.gguf", "formats/gguf/gpt2-q4_0"},
                      Pair{"LlamaF32", "llama-f32.gguf", "golden/llama/l2_mha_linear"},
                      Pair{"LlamaF16", "llama-f16.gguf", "formats/gguf/llama-f16"},
                      Pair{"LlamaBF16", "llama-bf16.gguf", "formats/gguf/llama-bf16"},
                      Pair{"LlamaQ8_0", "llama-q8_0.gguf", "formats/gguf/llama-q8_0"},
                      Pair{"LlamaQ4_0", "llama-q4_0.gguf", "formats/gguf/llama-q4_0"}),
    [](const auto& test) { return test.param.name; });

TEST(GgufModel, HoldsTheValuesOfItsCheckpointToTheBit) {
  for (const std::string name : {"gpt2-q8_0", "gpt2-q4_0", "llama-q8_0", "llama-q4_0"}) {
    const GgufFile gguf(kFolder + name + ".gguf");
    const Safetensors expected(kFolder + name + "/model.safetensors");
    ASSERT_EQ(gguf.tensors().size(), expected.tensors().size()) << name;
    for (const auto& [tensor, unused] : expected.tensors()) {
      ASSERT_EQ(gguf.at(tensor).shape, expected.at(tensor).shape) << name << " " << tensor;
      EXPECT_EQ(gguf.floats(tensor), expected.floats(tensor)) << name << " " << tensor;
    }
  }
}

TEST(GgufModel, IsFoundInADirectoryOfItsOwn) {
  const TemporaryDirectory directory;
  std::filesystem::copy(kFolder + "gpt2-q4_0.gguf", directory / "any.gguf");
  testing::write_text(directory / "README.md", "text");
  EXPECT_EQ(Checkpoint(directory / "").model_type(), "gpt2");
  // Hugging Face's repositories of GGUF files have one beside.
  testing::write_text(directory / "config.json", "{}");
  EXPECT_EQ(Checkpoint(directory / "").model_type(), "gpt2");
  std::filesystem::copy(kFolder + "gpt2-q8_0.gguf", directory / "more.gguf");
  try {
    const Checkpoint checkpoint(directory / "");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("2 GGUF files, any.gguf"), std::string::npos)
        << error.what();
  }
  // Beside another checkpoint it is just a copy of the model.
  std::filesystem::copy(
      kFolder + "llama-q8_0/", directory / "",
      std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  EXPECT_EQ(Checkpoint(directory / "").model_type(), "llama");
}

/// A Llama with one layer, two heads of two elements and three tokens.
GgufBuilder tiny_llama() {
  GgufBuilder file;
  file.add("general.architecture", std::string("llama"));
  const std::pair<const char*, uint32_t> kSizes[] = {
      {"block_count", 1},         {"context_length", 8},       {"embedding_length", 4},
      {"feed_forward_length", 2}, {"attention.head_count", 2}, {"rope.dimension_count", 2},
  };
  for (const auto& [key, value] : kSizes) file.add(std::string("llama.") + key, value);
  file.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const auto add = [&](const std::string& name, std::vector<uint64_t> sizes) {
    uint64_t count = 1;
    for (const uint64_t size : sizes) count *= size;
    file.add_floats(name, std::move(sizes), std::vector<float>(count, 0.5f));
  };
  add("token_embd.weight", {4, 3});
  add("output_norm.weight", {4});
  for (const char* name : {"attn_norm", "ffn_norm"})
    add(std::string("blk.0.") + name + ".weight", {4});
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    add(std::string("blk.0.") + name + ".weight", {4, 4});
  }
  add("blk.0.ffn_gate.weight", {4, 2});
  add("blk.0.ffn_up.weight", {4, 2});
  add("blk.0.ffn_down.weight", {2, 4});
  return file;
}

HuggingFaceModel model_of(const GgufBuilder& file) {
  const std::string bytes = file.bytes();
  HuggingFaceModel model = to_hugging_face(Gguf("t.gguf", std::as_bytes(std::span(bytes))));
  model.tensors.clear();
  return model;
}

std::string refusal(const GgufBuilder& file) {
  try {
    model_of(file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufModel, ConvertsAHandMadeFile) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "t.gguf", tiny_llama().bytes());
  EXPECT_FALSE(converted(directory / "t.gguf", false).empty());
}

TEST(GgufModel, IsTiedWithoutAHeadAndWithAHeadThatIsTheSame) {
  GgufBuilder file = tiny_llama();
  EXPECT_EQ(model_of(file).config["tie_word_embeddings"], true);
  file.add_floats("output.weight", {4, 3}, std::vector<float>(12, 0.5f));
  EXPECT_EQ(model_of(file).config["tie_word_embeddings"], true);
  file.data.back() = 0x40;
  EXPECT_EQ(model_of(file).config["tie_word_embeddings"], false);
}

TEST(GgufModel, PassesOverKeysThatChangeNothing) {
  GgufBuilder file = tiny_llama();
  file.add("general.file_type", 7u);
  file.add("general.name", std::string("any"));
  file.add("somebody.note", 3.5f);
  file.add("llama.expert_count", 0u);
  file.add("llama.use_parallel_residual", false);
  file.add("llama.tensor_data_layout", std::string("Meta AI original pth"));
  file.add("llama.rope.scaling.finetuned", true);
  file.add("llama.rope.scaling.type", std::string("none"));
  file.add("llama.rope.scaling.factor", 4.0f);
  file.add_array("llama.attention.head_count_kv", GgufType::kI32, 1, testing::raw<int32_t>(1));
  const HuggingFaceModel model = model_of(file);
  EXPECT_EQ(model.config["num_key_value_heads"], 1);
  EXPECT_FALSE(model.config.contains("rope_scaling"));
}

TEST(GgufModel, TakesBothNamesOfLinearScaling) {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    GgufBuilder file = tiny_llama();
    file.add(key, 4.0f);
    const nlohmann::json scaling = model_of(file).config["rope_scaling"];
    EXPECT_EQ(scaling["type"], "linear");
    EXPECT_EQ(scaling["factor"], 4.0);
  }
}

TEST(GgufModel, ReadsYarn) {
  GgufBuilder file = tiny_llama();
  file.add("llama.rope.scaling.type", std::string("yarn"));
  file.add("llama.rope.scaling.factor", 4.0f);
  file.add("llama.rope.scaling.original_context_length", 2048u);
  const nlohmann::json scaling = model_of(file).config["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "yarn");
  EXPECT_EQ(scaling["factor"], 4.0);
  EXPECT_EQ(scaling["original_max_position_embeddings"], 2048);
  EXPECT_EQ(scaling["beta_fast"], 32.0);
  EXPECT_FALSE(scaling.contains("attention_factor"));
}

TEST(GgufModel, ReadsDivisorsForShortAndLongTexts) {
  GgufBuilder file = tiny_llama();
  file.add("llama.rope.scaling.original_context_length", 2048u);
  file.add("llama.rope.scaling.attn_factor", 1.25f);
  file.add_floats("rope_factors_short.weight", {1}, {1.5f});
  file.add_floats("rope_factors_long.weight", {1}, {3});
  const nlohmann::json scaling = model_of(file).config["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "longrope");
  EXPECT_EQ(scaling["short_factor"], nlohmann::json({1.5}));
  EXPECT_EQ(scaling["long_factor"], nlohmann::json({3.0}));
  EXPECT_EQ(scaling["attention_factor"], 1.25);
  EXPECT_EQ(scaling["original_max_position_embeddings"], 2048);
}

struct Damage {
  const char* name;
  std::function<void(GgufBuilder&)> edit;
  std::vector<std::string> words;
};

class UnsupportedGguf : public ::testing::TestWithParam<Damage> {};

TEST_P(UnsupportedGguf, IsRefusedByName) {
  GgufBuilder file = tiny_llama();
  GetParam().edit(file);
  const std::string text = refusal(file);
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  for (const std::string& word : GetParam().words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
  }
}

/// Instead of the key of this name.
template <typename T>
void replace(GgufBuilder& file, const std::string& key, T value) {
  std::erase_if(file.keys, [&](const std::string& entry) {
    return entry.starts_with(testing::raw_text(key));
  });
  file.add(key, value);
}

const Damage kDamages[] = {
    {"Architecture",
     [](GgufBuilder& f) { replace(f, "general.architecture", std::string("grok")); },
     {"grok", "gpt2, gptneox"}},
    {"NoArchitecture",
     [](GgufBuilder& f) { f.keys.erase(f.keys.begin()); },
     {"general.architecture is missing"}},
    {"Adapter", [](GgufBuilder& f) { f.add("general.type", std::string("adapter")); }, {"adapter"}},
    {"Split",
     [](GgufBuilder& f) { f.add("split.count", 3u); },
     {"split.count", "llama-gguf-split"}},
    {"SlidingWindow",
     [](GgufBuilder& f) { f.add("llama.attention.sliding_window", 4096u); },
     {"llama.attention.sliding_window", "not supported"}},
    {"Softcap",
     [](GgufBuilder& f) { f.add("llama.final_logit_softcapping", 30.0f); },
     {"llama.final_logit_softcapping"}},
    {"Experts", [](GgufBuilder& f) { f.add("llama.expert_count", 8u); }, {"llama.expert_count"}},
    {"Yarn",
     [](GgufBuilder& f) { f.add("llama.rope.scaling.type", std::string("yarn")); },
     {"llama.rope.scaling.factor is missing"}},
    {"OtherScaling",
     [](GgufBuilder& f) { f.add("llama.rope.scaling.type", std::string("ntk")); },
     {"llama.rope.scaling.type", "linear or yarn"}},
    {"DivisorsWithoutALength",
     [](GgufBuilder& f) {
       f.add_floats("rope_factors_short.weight", {1}, {1});
       f.add_floats("rope_factors_long.weight", {1}, {1});
     },
     {"llama.rope.scaling.original_context_length is missing"}},
    {"PartialRotation",
     [](GgufBuilder& f) { replace(f, "llama.rope.dimension_count", 1u); },
     {"llama.rope.dimension_count", "expected 2"}},
    {"OtherValues",
     [](GgufBuilder& f) { f.add("llama.attention.value_length", 4u); },
     {"llama.attention.value_length", "expected 2"}},
    {"HeadsByLayer",
     [](GgufBuilder& f) {
       f.add_array("llama.attention.head_count_kv", GgufType::kI32, 2,
                   testing::raw<int32_t>(1) + testing::raw<int32_t>(2));
     },
     {"llama.attention.head_count_kv", "the same for all layers"}},
    {"ManyLayers",
     [](GgufBuilder& f) { replace(f, "llama.block_count", UINT32_MAX); },
     {"llama.block_count", "1024"}},
    {"MissingLayer",
     [](GgufBuilder& f) { replace(f, "llama.block_count", 2u); },
     {"blk.1.attn_norm.weight is missing"}},
    {"MissingKey",
     [](GgufBuilder& f) { f.keys.erase(f.keys.begin() + 1); },
     {"llama.block_count is missing"}},
    {"Epsilon",
     [](GgufBuilder& f) {
       replace(f, "llama.attention.layer_norm_rms_epsilon", std::string("small"));
     },
     {"layer_norm_rms_epsilon", "number"}},
    {"OtherVocabulary",
     [](GgufBuilder& f) { f.add("llama.vocab_size", 4u); },
     {"llama.vocab_size", "expected 3"}},
    {"UnknownTensor",
     [](GgufBuilder& f) { f.add_floats("blk.0.attn_gate.weight", {1}, {1}); },
     {"blk.0.attn_gate.weight"}},
    {"LayerBeyondTheLast",
     [](GgufBuilder& f) {
       f.add_floats("blk.1.attn_q.weight", {4, 4}, std::vector<float>(16));
     },
     {"blk.1.attn_q.weight", "1 layers"}},
    {"LayerByAnotherName",
     [](GgufBuilder& f) {
       f.add_floats("blk.00.attn_q.weight", {4, 4}, std::vector<float>(16));
     },
     {"blk.00.attn_q.weight"}},
    {"OddHeads",
     [](GgufBuilder& f) { replace(f, "llama.attention.head_count", 3u); },
     {"llama.rope.dimension_count"}},
    {"RopeFactorsOfAnotherRule",
     [](GgufBuilder& f) { f.add_floats("rope_freqs.weight", {1}, {3}); },
     {"rope_freqs.weight", "Llama 3"}},
    {"RopeFactorsOfAnotherSize",
     [](GgufBuilder& f) {
       f.add_floats("rope_freqs.weight", {2}, {1, 1});
     },
     {"rope_freqs.weight", "F32[1]"}},
    {"RopeFactorsAndAKey",
     [](GgufBuilder& f) {
       f.add("llama.rope.scaling.factor", 2.0f);
       f.add_floats("rope_freqs.weight", {1}, {1});
     },
     {"rope_freqs.weight", "both"}},
    {"OldBlocks",
     [](GgufBuilder& f) {
       f.add("general.quantization_version", 1u);
       f.tensors[0] = {"token_embd.weight", {32, 3}, 8, 0};
       f.data = std::string(128, '\0') + f.data;
       for (size_t i = 1; i < f.tensors.size(); ++i) f.tensors[i].offset += 128;
     },
     {"general.quantization_version"}},
};

INSTANTIATE_TEST_SUITE_P(All, UnsupportedGguf, ::testing::ValuesIn(kDamages),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace oxbow::convert
