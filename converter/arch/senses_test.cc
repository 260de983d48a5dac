// What the importers of models that see, hear or mix without attention refuse, and what they take that the golden
// packs do not hold.

#include <gtest/gtest.h>

#include <string>

#include "converter/importers.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using testing::EditableCheckpoint;
using testing::TemporaryDirectory;

EditableCheckpoint golden(const std::string& name) {
  return EditableCheckpoint::read(testing::source_dir() + "/tests/golden/" + name);
}

/// The graph of a checkpoint that is written and read again.
Graph imported(const EditableCheckpoint& editable, const ImportOptions& options = {}) {
  const TemporaryDirectory directory;
  editable.write(directory / "in");
  return import_checkpoint(Checkpoint(directory / "in"), options);
}

std::string refusal(const EditableCheckpoint& editable, const ImportOptions& options = {}) {
  try {
    imported(editable, options);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was refused";
}

struct Refused {
  const char *pack, *key, *words;
  nlohmann::json value;
};

TEST(Senses, RefuseWhatWouldChangeTheResults) {
  const Refused cases[] = {
      {"vit/vi1", "image_size", "expected one integer, or a list of 2", {42, 42, 42}},
      {"vit/vi1", "image_size", "patch_size is 6 by 6, expected no more than image_size", {42, 5}},
      {"vit/vi1", "num_channels", "projection.weight has shape [32, 3, 6, 6]", 1},
      {"vit/vi1", "patch_size", "projection.weight has shape [32, 3, 6, 6]", {6, 3}},
      {"vit/vi1", "hidden_act", "hidden_act is \"mish\"", "mish"},
      {"vit/vi1", "qkv_bias", "key.bias", false},
      {"vit/vi1", "is_decoder", "is_decoder is true", true},
      {"crate/cr1", "image_size", "image_size is 22, expected a multiple", 22},
      {"crate/cr1", "pool", "pool is \"max\", expected one of: cls, mean", "max"},
      {"crate/cr1", "num_classes", "mlp_head.1.", 12},
      {"crate/cr1", "dim_head", "qkv.weight has shape [40, 40]", 8},
      {"fnet/fn1", "hidden_act", "hidden_act is \"mish\"", "mish"},
      {"fnet/fn1", "is_decoder", "is_decoder is true", true},
      {"nystromformer/ny1", "num_landmarks", "num_landmarks is 50", 50},
      {"nystromformer/ny1", "segment_means_seq_len", "no more tokens than 48", 80},
      {"nystromformer/ny1", "conv_kernel_size", "conv_kernel_size is 4, expected an odd", 4},
      {"nystromformer/ny1", "conv_kernel_size", "conv.weight has shape [5, 1, 5, 1]", 7},
      {"nystromformer/ny1", "inv_coeff_init_option", "inv_coeff_init_option is true", true},
      {"whisper/wh2", "encoder_attention_heads", "d_model is 24, expected a multiple", 5},
      {"whisper/wh2", "num_mel_bins", "conv1.weight has shape [24, 16, 3]", 80},
      {"whisper/wh2", "max_source_positions", "embed_positions.weight has shape [40, 24]", 41},
      {"whisper/wh2", "tie_word_embeddings", "proj_out.weight is missing", false},
      {"whisper/wh2", "suppress_tokens", "suppress_tokens", {71}},
  };
  for (const Refused& c : cases) {
    EditableCheckpoint changed = golden(c.pack);
    changed.config[c.key] = c.value;
    const std::string text = refusal(changed);
    EXPECT_NE(text.find(c.words), std::string::npos) << c.pack << ' ' << c.key << ": " << text;
  }
}

TEST(Senses, LengthsThatAreTheModelsOwnCannotBeChosen) {
  ImportOptions options;
  options.max_segment = 20;
  for (const char* pack : {"vit/vi1", "crate/cr1", "whisper/wh2", "nystromformer/ny1"}) {
    const std::string text = refusal(golden(pack), options);
    EXPECT_NE(text.find("--max-segment"), std::string::npos) << pack << ": " << text;
  }
  options.max_segment = 40;
  EXPECT_NO_THROW(imported(golden("nystromformer/ny1"), options));
  EXPECT_NO_THROW(imported(golden("fnet/fn1"), options));
}

TEST(Senses, AVisionTransformerWithoutAClassifierGivesItsHiddenStates) {
  EditableCheckpoint bare = golden("vit/vi1");
  bare.tensors.erase("classifier.weight");
  bare.tensors.erase("classifier.bias");
  Graph graph = imported(bare);
  EXPECT_EQ(graph.model.task, schema::Task::Encode);
  EXPECT_EQ(graph.tensor(graph.main_entry().logits).rows, 50u);
  bare.tensors["vit.pooler.dense.weight"] = {{7, 32}, std::vector<float>(224)};
  bare.tensors["vit.pooler.dense.bias"] = {{7}, std::vector<float>(7)};
  bare.config["pooler_output_size"] = 7;
  graph = imported(bare);
  ASSERT_EQ(graph.main_entry().outputs.size(), 1u);
  EXPECT_EQ(graph.tensor(graph.main_entry().outputs[0]).name, "pooler_output");
  EXPECT_EQ(graph.tensor(graph.main_entry().outputs[0]).width, 7u);
}

TEST(Senses, SidesOfImagesAndPatchesMayDiffer) {
  EditableCheckpoint wide = golden("vit/vi1");
  wide.config["image_size"] = {30, 59};
  wide.tensors["vit.embeddings.position_embeddings"] = {{1, 46, 32}, std::vector<float>(46 * 32)};
  const Graph graph = imported(wide);
  EXPECT_EQ(graph.tensor(graph.main_entry().tokens).width, 30u * 59u);
}

TEST(Senses, AsManyLandmarksAsTokensMeansPlainAttentionForAnyLength) {
  EditableCheckpoint plain = golden("nystromformer/ny1");
  plain.config["num_landmarks"] = 40;
  const Graph graph = imported(plain);
  EXPECT_TRUE(graph.main_entry().outputs.empty());
  EXPECT_EQ(graph.tensor(graph.main_entry().tokens).rows, 48u);
  plain.config["conv_kernel_size"] = nullptr;
  EXPECT_NE(refusal(plain).find("conv.weight"), std::string::npos) << refusal(plain);
}

}  // namespace
}  // namespace oxbow::convert
