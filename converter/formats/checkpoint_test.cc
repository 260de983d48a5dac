#include "converter/formats/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "converter/importers.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::EditableCheckpoint;
using testing::FloatTensors;
using testing::safetensors_bytes;
using testing::TemporaryDirectory;
using testing::write_text;

template <typename Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

EditableCheckpoint small() {
  return {{{"model_type", "m"},
           {"size", 4},
           {"eps", 0.5},
           {"on", true},
           {"word", "relu"},
           {"list", {1, 2}},
           {"nothing", nullptr}},
          {{"w", {{2, 2}, {1, 2, 3, 4}}}, {"v", {{2}, {5, 6}}}}};
}

class CheckpointTest : public ::testing::Test {
 protected:
  Checkpoint open(const EditableCheckpoint& checkpoint, const std::string& extra = "") {
    checkpoint.write(directory_ / "in");
    return Checkpoint(directory_ / "in", extra);
  }
  TemporaryDirectory directory_;
};

TEST_F(CheckpointTest, ReadsKeysWithTypes) {
  const Checkpoint c = open(small());
  EXPECT_EQ(c.model_type(), "m");
  EXPECT_EQ(c.size("size", 1, 10), 4u);
  EXPECT_EQ(c.size("absent", 1, 10, 7), 7u);
  EXPECT_EQ(c.number("eps", 0, 1, 0), 0.5);
  EXPECT_TRUE(c.flag("on", false));
  EXPECT_EQ(c.choice("word", "gelu", {"gelu", "relu"}), "relu");
  EXPECT_EQ(c.sizes("list", 1, 5), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(c.size_for_each("list", 1, 5, 2), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(c.size_for_each("size", 1, 5, 3), (std::vector<uint32_t>{4, 4, 4}));
  EXPECT_TRUE(c.has_value("size"));
  EXPECT_FALSE(c.has_value("absent"));
  EXPECT_FALSE(c.has_value("nothing"));
  EXPECT_EQ(c.labels(2), (std::vector<std::string>{}));
}

TEST_F(CheckpointTest, AKeyThatIsNullCountsAsMissingWhereThatIsAllowed) {
  EditableCheckpoint editable = small();
  for (const char* key : {"size", "eps", "on", "word", "list"}) editable.config[key] = nullptr;
  const Checkpoint c = open(editable);
  EXPECT_EQ(c.size("size", 1, 10, 7), 7u);
  EXPECT_EQ(c.number("eps", 0, 1, 0.25), 0.25);
  EXPECT_FALSE(c.flag("on", false));
  EXPECT_EQ(c.choice("word", "gelu", {"gelu", "relu"}), "gelu");
  EXPECT_TRUE(c.sizes("list", 1, 5).empty());
  EXPECT_NE(refusal([&] { c.size("size", 1, 9); }).find("size is null"), std::string::npos);
}

TEST_F(CheckpointTest, ReadsListsOfFlags) {
  EditableCheckpoint editable = small();
  editable.config["flags"] = {true, false};
  const Checkpoint c = open(editable);
  EXPECT_EQ(c.flags("flags"), (std::vector<bool>{true, false}));
  EXPECT_TRUE(c.flags("absent").empty());
  EXPECT_NE(refusal([&] { c.flags("list"); }).find("expected a list of true and false"),
            std::string::npos);
}

TEST_F(CheckpointTest, RefusesKeysNamingKeyValueAndWhatWasExpected) {
  const Checkpoint c = open(small());
  const auto has = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  has(refusal([&] { c.size("absent", 1, 9); }),
      "key absent is missing, expected an integer from 1 to 9");
  has(refusal([&] { c.size("size", 5, 9); }), "size is 4, expected an integer from 5 to 9");
  has(refusal([&] { c.size("word", 5, 9); }), "word is \"relu\", expected an integer");
  has(refusal([&] { c.flag("size", true); }), "size is 4, expected true or false");
  has(refusal([&] { c.choice("word", "", {"gelu", "silu"}); }), "expected one of: gelu, silu");
  has(refusal([&] { c.number("eps", 0, 0.25, 0); }),
      "eps is 0.5, expected a number from 0 to 0.25");
  has(refusal([&] { c.sizes("list", 2, 5); }), "list is [1,2]");
  has(refusal([&] { c.size_for_each("list", 1, 5, 3); }),
      "list is [1,2], expected one integer, or a list of 3");
}

TEST_F(CheckpointTest, ChecksTensors) {
  EditableCheckpoint editable = small();
  editable.tensors["nan"] = {{3}, {1, NAN, 2}};
  editable.tensors["inf"] = {{1}, {-INFINITY}};
  const Checkpoint c = open(editable);
  EXPECT_EQ(c.matrix("w", 2, 2), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(c.vector("v", 2), (std::vector<float>{5, 6}));
  EXPECT_NE(refusal([&] { c.matrix("w", 2, 3); }).find("w has shape [2, 2], expected [2, 3]"),
            std::string::npos);
  EXPECT_NE(refusal([&] { c.vector("weight", 3); }).find("tensor weight is missing"),
            std::string::npos);
  EXPECT_NE(refusal([&] { c.vector("nan", 3); }).find("nan has the value nan at index 1"),
            std::string::npos);
  EXPECT_NE(refusal([&] { c.vector("inf", 1); }).find("inf has the value -inf at index 0"),
            std::string::npos);
  EXPECT_EQ(c.parameters(), 4u + 2 + 3 + 1);
}

TEST_F(CheckpointTest, WhatNobodyAskedForIsRefused) {
  const Checkpoint c = open(small());
  EXPECT_NE(refusal([&] { c.finish(); })
                .find(": 6 problems for model_type m:\n  unknown key eps\n  unknown key list\n"
                      "  unknown key on\n  unknown key size\n  unknown key word\n"
                      "  tensors that model_type m does not know: v, w\n"
                      "remove what does not change the results, or use --ignore-key"),
            std::string::npos);
  c.ignore_keys({"eps", "list", "on", "size", "word"});
  EXPECT_NE(refusal([&] { c.finish(); }).find("does not know: v, w"), std::string::npos);
  c.vector("v", 2);
  c.ignore_tensor("w");
  EXPECT_TRUE(c.finish().empty());
}

TEST_F(CheckpointTest, ExtraTensorsCompleteReplaceAndMayBeUnknown) {
  write_text(directory_ / "extra.safetensors",
             safetensors_bytes(
                 FloatTensors{{"v", {{2}, {7, 8}}}, {"new", {{1}, {9}}}, {"unknown", {{1}, {0}}}}));
  const Checkpoint c = open(small(), directory_ / "extra.safetensors");
  EXPECT_EQ(c.vector("v", 2), (std::vector<float>{7, 8}));
  EXPECT_EQ(c.vector("new", 1), std::vector<float>{9});
  c.matrix("w", 2, 2);
  c.ignore_keys({"eps", "list", "on", "size", "word"});
  EXPECT_TRUE(c.finish().empty());
}

TEST_F(CheckpointTest, ReadsShards) {
  const std::string in = directory_ / "in/";
  write_text(in + "config.json", R"({"model_type":"m"})");
  write_text(in + "one.safetensors", safetensors_bytes(FloatTensors{{"a", {{1}, {1}}}}));
  write_text(in + "two.safetensors", safetensors_bytes(FloatTensors{{"b", {{1}, {2}}}}));
  const auto index = [&](const std::string& map) {
    write_text(in + "model.safetensors.index.json", "{\"weight_map\":" + map + "}");
  };
  index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  const Checkpoint c(directory_ / "in");
  EXPECT_EQ(c.vector("a", 1), std::vector<float>{1});
  EXPECT_EQ(c.vector("b", 1), std::vector<float>{2});

  const auto refused = [&] { return refusal([&] { Checkpoint(directory_ / "in"); }); };
  index(R"({"a":"two.safetensors","b":"two.safetensors"})");
  EXPECT_NE(refused().find("tensor a is not in two.safetensors"), std::string::npos);
  index(R"({"a":"../one.safetensors"})");
  EXPECT_NE(refused().find("does not name a file in the same directory"), std::string::npos);
  index(R"({"a":"absent.safetensors"})");
  EXPECT_NE(refused().find("absent.safetensors"), std::string::npos);
  index("[]");
  EXPECT_NE(refused().find("weight_map"), std::string::npos);
  write_text(in + "two.safetensors", safetensors_bytes(FloatTensors{{"a", {{1}, {2}}}}));
  index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  EXPECT_NE(refused().find("tensor a is in both"), std::string::npos);
}

TEST_F(CheckpointTest, SaysWhatADirectoryLacks) {
  const auto refused = [&] { return refusal([&] { Checkpoint(directory_ / "in"); }); };
  EXPECT_NE(refused().find("there is no directory"), std::string::npos);
  write_text(directory_ / "in/pytorch_model.bin", "x");
  EXPECT_NE(refused().find("no config.json"), std::string::npos);
  write_text(directory_ / "in/config.json", R"({"model_type":"m"})");
  EXPECT_NE(refused().find("pytorch_model.bin is neither a safetensors file nor"),
            std::string::npos);
  std::filesystem::remove(directory_ / "in/pytorch_model.bin");
  EXPECT_NE(refused().find("has no tensor file; expected model.safetensors, pytorch_model.bin"),
            std::string::npos);
}

TEST_F(CheckpointTest, AFileOfADirectoryStandsForIt) {
  small().write(directory_ / "in");
  write_text(directory_ / "in/other.safetensors",
             safetensors_bytes(FloatTensors{{"a", {{1}, {7}}}}));
  EXPECT_TRUE(Checkpoint(directory_ / "in/config.json").has_tensor("w"));
  const Checkpoint other(directory_ / "in/other.safetensors");
  EXPECT_EQ(other.vector("a", 1), std::vector<float>{7});
  EXPECT_FALSE(other.has_tensor("w"));
  EXPECT_EQ(other.model_type(), "m");
}

TEST_F(CheckpointTest, AMissingModelTypeIsToldByTheTensors) {
  EditableCheckpoint editable = small();
  editable.config.erase("model_type");
  EXPECT_NE(refusal([&] { open(editable); }).find("key model_type is missing"), std::string::npos);
  editable.tensors["bert.encoder.layer.0.attention.self.query.weight"] = {{1}, {0}};
  editable.tensors["bert.embeddings.token_type_embeddings.weight"] = {{1}, {0}};
  const Checkpoint c = open(editable);
  EXPECT_EQ(c.model_type(), "bert");
  ASSERT_FALSE(c.notes().empty());
  EXPECT_NE(c.notes().back().find("by its tensors it is bert"), std::string::npos);
}

TEST_F(CheckpointTest, KeysAndTensorsCanBeIgnored) {
  EditableCheckpoint editable = small();
  editable.config["outer"] = {{"inner", 1}, {"other", 2}};
  editable.tensors["heads.0.weight"] = {{1}, {0}};
  editable.tensors["heads.1.weight"] = {{1}, {0}};
  Checkpoint c = open(editable);
  c.ignore_keys({"size", "eps", "on", "word", "list", "outer.other"});
  c.ignore_tensor("w");
  c.ignore_tensor("v");
  const std::string both = refusal([&] { c.finish(); });
  EXPECT_NE(both.find("unknown key outer.inner"), std::string::npos) << both;
  EXPECT_NE(both.find("heads.0.weight, heads.1.weight"), std::string::npos) << both;
  c.drop_key("outer.inner");
  c.drop_tensors("heads.?.*");
  EXPECT_NO_THROW(c.finish());
  EXPECT_THROW(c.drop_key("outer.inner"), UsageError);
  EXPECT_THROW(c.drop_tensors("head*z"), UsageError);
}

TEST_F(CheckpointTest, KeysThatChangeNothingAreNoted) {
  EditableCheckpoint editable = small();
  editable.config["transformers.js_config"] = {{"dtype", "q4"}};
  editable.config["unsloth_fixed"] = true;
  const Checkpoint c = open(editable);
  c.ignore_keys({"size", "eps", "on", "word", "list"});
  c.ignore_tensor("w");
  c.ignore_tensor("v");
  c.finish();
  c.finish();
  ASSERT_EQ(c.notes().size(), 1u);
  EXPECT_NE(c.notes()[0].find("transformers.js_config, unsloth_fixed, nothing"), std::string::npos)
      << c.notes()[0];
}

TEST_F(CheckpointTest, WeightsStoredBySomeMethodGetAdvice) {
  EditableCheckpoint editable = small();
  editable.config["quantization_config"] = {{"quant_method", "hqq"}};
  EXPECT_NE(refusal([&] { open(editable); }).find("stored by hqq, which is not read; convert"),
            std::string::npos);
}

TEST_F(CheckpointTest, TheHashDependsOnEveryFile) {
  EditableCheckpoint editable = small();
  const std::string before = open(editable).source_hash();
  EXPECT_EQ(before.size(), 64u);
  EXPECT_EQ(open(editable).source_hash(), before);
  editable.tensors["v"].values[0] = 5.5f;
  const std::string after = open(editable).source_hash();
  EXPECT_NE(after, before);
  editable.config["size"] = 5;
  EXPECT_NE(open(editable).source_hash(), after);
}

TEST_F(CheckpointTest, UnknownArchitecturesAreNamedWithTheKnownOnes) {
  const Checkpoint c = open(small());
  const std::string text = refusal([&] { import_checkpoint(c, {}); });
  EXPECT_NE(text.find("model_type m is not supported, supported: "), std::string::npos) << text;
  for (const std::string& known : supported_model_types()) {
    EXPECT_NE(text.find(known), std::string::npos) << text;
  }
}

TEST_F(CheckpointTest, AllProblemsOfAConfigAreToldAtOnce) {
  EditableCheckpoint changed = EditableCheckpoint::read(
      testing::source_dir() + "/tests/golden/labml_compressive/c1_d32_fullP");
  changed.config["activation"] = "maxout";
  changed.config["compression"] = 3;
  changed.config["mem_len"] = 0;
  changed.config["a_new_one"] = true;
  changed.config["another"] = {{"a", 1}};
  const Checkpoint checkpoint = open(changed);
  const std::string text = refusal([&] { import_checkpoint(checkpoint, {}); });
  for (const char* line :
       {"config.json: 5 problems for model_type labml_compressive_transformer:\n",
        "\n  activation is \"maxout\", expected one of: ",
        "\n  compression is 3, expected one of: ", "\n  mem_len is 0, expected an integer from ",
        "\n  unknown key a_new_one\n", "\n  unknown key another\n", "use --ignore-key"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in " << text;
  }
}

TEST_F(CheckpointTest, AllTensorsThatAreMissingOrDoNotFitAreToldAtOnce) {
  EditableCheckpoint changed = EditableCheckpoint::read(
      testing::source_dir() + "/tests/golden/labml_compressive/c1_d32_fullP");
  changed.tensors["transformer.norm.scale"] = changed.tensors.at("transformer.norm.weight");
  changed.tensors.erase("transformer.norm.weight");
  changed.tensors["generator.bias"] = {{3}, {1, 2, 3}};
  changed.config["a_new_one"] = true;
  const Checkpoint checkpoint = open(changed);
  const std::string text = refusal([&] { import_checkpoint(checkpoint, {}); });
  for (const char* line :
       {": 4 problems for model_type labml_compressive_transformer:\n",
        "\n  tensor transformer.norm.weight is missing; the nearest name there is ",
        "\n  tensor generator.bias has shape [3], expected [65]\n", "\n  unknown key a_new_one\n",
        "does not know: transformer.norm.scale\n", "use --ignore-key"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in " << text;
  }
}

TEST_F(CheckpointTest, OfManyTensorsThatAreMissingTheFirstAreToldAndHowMany) {
  EditableCheckpoint changed = EditableCheckpoint::read(
      testing::source_dir() + "/tests/golden/labml_compressive/c1_d32_fullP");
  const size_t gone = std::erase_if(changed.tensors, [](const auto& one) {
    return one.first.find(".feed_forward.") != std::string::npos ||
           one.first.find(".norm_") != std::string::npos;
  });
  const Checkpoint checkpoint = open(changed);
  const std::string text = refusal([&] { import_checkpoint(checkpoint, {}); });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11) << text;
  EXPECT_NE(text.find(": " + std::to_string(gone) + " problems for model_type"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\n  and " + std::to_string(gone - 10) + " more")) << text;
}

TEST_F(CheckpointTest, WhatDoesNotFitToAnotherValueIsNoProblemOfTheConfig) {
  EditableCheckpoint changed = EditableCheckpoint::read(
      testing::source_dir() + "/tests/golden/labml_compressive/c1_d32_fullP");
  changed.config["d_model"] = "wide";
  changed.config["unknown"] = 1;
  const Checkpoint checkpoint = open(changed);
  const std::string text = refusal([&] { import_checkpoint(checkpoint, {}); });
  EXPECT_NE(text.find("d_model is \"wide\", expected an integer"), std::string::npos) << text;
  EXPECT_EQ(text.find("shape"), std::string::npos) << text;
}

TEST_F(CheckpointTest, ImportersRefuseWhatWouldChangeTheResults) {
  struct Case {
    const char *key, *words;
    nlohmann::json value;
  };
  const Case cases[] = {
      {"is_gated", "is_gated is true", true},
      {"activation", "activation is \"maxout\", expected one of: gelu, gelu_", "maxout"},
      {"compression", "expected one of: conv, mean, max", "median"},
      {"vocab_size", "vocab_size is 66, expected n_tokens, 65", 66},
      {"P", "twice P of config.json", 4000},
      {"tie_weights", "unknown key tie_weights", true},
      {"compression_rate", "shape [32, 32, 2], expected [32, 32, 3]", 3},
      {"heads", "d_model is 32, expected a multiple of heads, 5", 5},
      {"compression", "does not know: transformer.layers.0.compress.conv.bias", "mean"},
      {"mem_len", "mem_len is 0, expected", 0},
  };
  const EditableCheckpoint golden = EditableCheckpoint::read(
      testing::source_dir() + "/tests/golden/labml_compressive/c1_d32_fullP");
  for (const Case& c : cases) {
    EditableCheckpoint changed = golden;
    changed.config[c.key] = c.value;
    const Checkpoint checkpoint = open(changed);
    const std::string text = refusal([&] { import_checkpoint(checkpoint, {}); });
    EXPECT_NE(text.find(c.words), std::string::npos) << c.key << ": " << text;
  }
}

}  // namespace
}  // namespace oxbow::convert
