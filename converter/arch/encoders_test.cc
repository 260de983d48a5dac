// What the importers of encoders refuse, and what they take that the golden packs do not hold.

#include <gtest/gtest.h>

#include <string>

#include "converter/testing/imports.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using testing::EditableCheckpoint;
using testing::golden;
using testing::imported;
using testing::refusal;

struct Refused {
  const char *pack, *key, *words;
  nlohmann::json value;
};

TEST(Encoders, RefuseWhatWouldChangeTheResults) {
  const Refused cases[] = {
      {"bert/b1_cls", "position_embedding_type",
       "position_embedding_type is \"rotary\", expected one of: absolute, relative_key", "rotary"},
      {"bert/b1_cls", "is_decoder", "is_decoder is true, expected false", true},
      {"bert/b1_cls", "add_cross_attention", "add_cross_attention is true, expected false", true},
      {"bert/b1_cls", "hidden_act", "hidden_act is \"mish\", expected one of", "mish"},
      {"bert/b1_cls", "num_attention_heads", "hidden_size is 48, expected a multiple", 5},
      {"bert/b1_cls", "id2label", "expected a name for each class from 0 to 2", {{"0", "a"}}},
      {"bert/b1_cls", "type_vocab_size", "token_type_embeddings.weight has shape [2, 48]", 3},
      {"bert/b2_mlm", "tie_word_embeddings", "cls.predictions.decoder.weight is missing", false},
      {"bert/b2_mlm", "pruned_heads", "unknown key pruned_heads", {{"0", {1}}}},
      {"roformer/ro1", "embedding_size", "word_embeddings.weight has shape [97, 48]", 24},
      {"roformer/ro1", "num_attention_heads", "expected a multiple of two", 16},
      {"longformer/lf1", "attention_window", "expected one integer, or a list of 3", {8, 4}},
      {"longformer/lf1", "attention_window", "attention_window has 5, expected even", {8, 5, 4}},
      {"longformer/lf1", "ignore_attention_mask", "expected false", true},
      {"longformer/lf1", "attention_mode", "expected longformer", "autoregressive"},
      {"roberta/rb1_mlm", "pad_token_id", "max_position_embeddings is 50", 50},
      {"roberta/rb1_mlm", "position_embedding_type", "expected absolute", "relative_key"},
      {"albert/al1_mlm", "num_hidden_groups", "expected an integer from 1 to 4", 5},
      {"longformer/lf1", "pad_token_id", "max_position_embeddings is 130", 130},
      {"xlnet/xn1_bi", "attn_type", "attn_type is \"uni\", expected bi", "uni"},
      {"xlnet/xn1_bi", "bi_data", "bi_data is true, expected false", true},
      {"xlnet/xn1_bi", "d_head", "d_head is 8, expected an integer from 12 to 12", 8},
      {"xlnet/xn1_bi", "mem_len", "mem_len is -1", -1},
  };
  for (const Refused& c : cases) {
    EditableCheckpoint changed = golden(c.pack);
    changed.config[c.key] = c.value;
    const std::string text = refusal(changed);
    EXPECT_NE(text.find(c.words), std::string::npos) << c.pack << ' ' << c.key << ": " << text;
  }
}

TEST(Encoders, RefuseHeadsTheyDoNotKnow) {
  EditableCheckpoint texts = golden("bert/b1_cls");
  texts.tensors.erase("bert.pooler.dense.weight");
  texts.tensors.erase("bert.pooler.dense.bias");
  texts.config["architectures"] = {"BertForSequenceClassification"};
  EXPECT_NE(refusal(texts).find("tensor bert.pooler.dense"), std::string::npos) << refusal(texts);

  EditableCheckpoint answers = golden("roformer/ro1");
  answers.tensors["qa_outputs.weight"] = {{2, 48}, std::vector<float>(96)};
  EXPECT_NE(refusal(answers).find("does not know: qa_outputs.weight"), std::string::npos)
      << refusal(answers);

  EditableCheckpoint summary = golden("xlnet/xn1_bi");
  summary.tensors["sequence_summary.summary.bias"] = {{48}, std::vector<float>(48)};
  EXPECT_NE(refusal(summary).find("does not know: sequence_summary.summary.bias"),
            std::string::npos)
      << refusal(summary);
}

TEST(Encoders, ClassifyEachTokenWhereTheModelSaysSo) {
  // Older versions saved a pooler that is not used.
  EditableCheckpoint tokens = golden("bert/b1_cls");
  tokens.config["architectures"] = {"BertForTokenClassification"};
  EXPECT_EQ(imported(tokens).model.task, schema::Task::Encode);
  EXPECT_EQ(imported(golden("bert/b1_cls")).model.task, schema::Task::Classify);
  const Graph named = imported(golden("bert/b3_tokens"));
  EXPECT_EQ(named.model.task, schema::Task::Encode);
  EXPECT_EQ(named.model.metadata->labels.size(), 5u);
  EditableCheckpoint modern = golden("modernbert/mo2_cls_legacy");
  modern.config["architectures"] = {"ModernBertForTokenClassification"};
  EXPECT_EQ(imported(modern).model.task, schema::Task::Encode);
}

TEST(Encoders, NamesThatNobodyGaveAreNoNames) {
  EditableCheckpoint unnamed = golden("bert/b1_cls");
  unnamed.config["id2label"] = {{"0", "LABEL_0"}, {"1", "LABEL_1"}};
  EXPECT_TRUE(imported(unnamed).model.metadata->labels.empty());
}

TEST(Encoders, LayersOfAlbertShareTheirWeights) {
  size_t matrices = 0;
  for (const auto& tensor : imported(golden("albert/al1_mlm")).model.tensors) {
    matrices += tensor->name.find("albert_layers.0.ffn.weight") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(matrices, 1u);
  EditableCheckpoint two = golden("albert/al1_mlm");
  two.config["num_hidden_groups"] = 2;
  EXPECT_NE(refusal(two).find("encoder.albert_layer_groups.1.albert_layers.0.attention"),
            std::string::npos)
      << refusal(two);
  EditableCheckpoint sentences = golden("albert/al1_mlm");
  sentences.tensors["sop_classifier.classifier.weight"] = {{2, 36}, std::vector<float>(72)};
  sentences.tensors["sop_classifier.classifier.bias"] = {{2}, std::vector<float>(2)};
  EXPECT_EQ(imported(sentences).warnings.size(), 1u);
}

TEST(Encoders, RunsAreNoLongerThanTheModelsPositions) {
  ImportOptions options;
  options.max_segment = 41;
  const std::string text = refusal(golden("bert/b1_cls"), options);
  EXPECT_NE(text.find("--max-segment is 41, expected at most the model's positions, 40"),
            std::string::npos)
      << text;
  options.max_segment = 40;
  EXPECT_EQ(imported(golden("bert/b1_cls"), options).model.symbols[0]->max, 40u);
  // The rows up to that of the padding belong to no token.
  EXPECT_EQ(imported(golden("longformer/lf1")).model.symbols[0]->max, 128u);
}

TEST(Encoders, TheHeadsTellTheTask) {
  const Graph classifier = imported(golden("bert/b1_cls"));
  EXPECT_EQ(classifier.model.task, schema::Task::Classify);
  EXPECT_EQ(classifier.model.metadata->labels,
            (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
  EXPECT_EQ(imported(golden("bert/b2_mlm")).model.task, schema::Task::FillMask);
  EXPECT_EQ(imported(golden("roformer/ro1")).model.task, schema::Task::Encode);
}

TEST(Encoders, TiedWeightsMayBeStoredAndOldNamesKept) {
  EditableCheckpoint stored = golden("bert/b2_mlm");
  const auto words = stored.tensors.at("bert.embeddings.word_embeddings.weight");
  stored.tensors["cls.predictions.decoder.weight"] = words;
  stored.tensors["cls.predictions.decoder.bias"] = stored.tensors.at("cls.predictions.bias");
  stored.tensors["bert.embeddings.position_ids"] = {{1, 24}, std::vector<float>(24)};
  const auto norm = stored.tensors.extract("bert.embeddings.LayerNorm.weight");
  stored.tensors["bert.embeddings.LayerNorm.gamma"] = norm.mapped();
  const auto bias = stored.tensors.extract("bert.embeddings.LayerNorm.bias");
  stored.tensors["bert.embeddings.LayerNorm.beta"] = bias.mapped();
  EXPECT_EQ(imported(stored).model.task, schema::Task::FillMask);
  stored.config["tie_word_embeddings"] = false;
  EXPECT_EQ(refusal(stored), "nothing was refused");
}

TEST(Encoders, WhatIsLeftOutIsSaid) {
  EditableCheckpoint pretrained = golden("bert/b2_mlm");
  pretrained.tensors["cls.seq_relationship.weight"] = {{2, 40}, std::vector<float>(80)};
  pretrained.tensors["cls.seq_relationship.bias"] = {{2}, std::vector<float>(2)};
  const Graph graph = imported(pretrained);
  ASSERT_EQ(graph.warnings.size(), 1u);
  EXPECT_NE(graph.warnings[0].find("cls.seq_relationship"), std::string::npos);
}

TEST(Encoders, AMemoryWithoutALengthIsAsLongAsTheContext) {
  const EditableCheckpoint checkpoint = golden("xlnet/xn2_bi_types_pad");
  ImportOptions options;
  options.context = 40;
  const Graph ends = imported(checkpoint, options);
  EXPECT_EQ(ends.main_entry().capacity, 40u);
  EXPECT_EQ(ends.model.rings[0]->capacity, 40u);
  EXPECT_EQ(ends.model.symbols[0]->max, 40u);
  options.ring = true;
  EXPECT_EQ(imported(checkpoint, options).main_entry().capacity, 0u);

  EditableCheckpoint forgets = checkpoint;
  forgets.config["use_mems_eval"] = false;
  EXPECT_TRUE(imported(forgets).main_entry().starts);
  EXPECT_TRUE(imported(forgets).model.rings.empty());
}

}  // namespace
}  // namespace oxbow::convert
