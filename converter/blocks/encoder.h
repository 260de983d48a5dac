#pragma once

// Encoders built like BERT (Devlin et al. 2018): embeddings, layers, then one of a few heads. Tensors
// have the names BERT's have in Hugging Face's library, or those of a table; what a model does
// differently, mostly its attention, its importer in arch/ says.

#include <cstdint>
#include <functional>
#include <string>

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_layer.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

/// Texts of more than `above` tokens are filled up inside with pad tokens that are masked, to a multiple of `multiple`.
struct EncoderPadding {
  uint32_t multiple = 1;
  uint32_t above = 0;
  uint32_t token = 0;
};

struct EncoderConfig {
  uint32_t vocabulary = 0;
  /// Kinds of tokens; 0: the model knows none.
  uint32_t types = 0;
  /// Tokens of one run at most, by the model's positions.
  uint32_t positions = 0;
  /// Rows of the table of positions beyond max_position_embeddings.
  uint32_t unused_positions = 0;
  /// There may be padding, which the caller's mask tells.
  bool has_mask = true;
  /// Of the embeddings; differs from the layers' when there is a projection between them.
  uint32_t embedding_width = 0;
  uint32_t layers = 0;
  uint32_t max_segment = 0;
  bool tied = true;
  TransformerLayer layer;
  /// What the names of all tensors but the heads' begin with in a model that has a head.
  std::string base;
  std::string words = "embeddings.word_embeddings.weight";
  std::string embedding_norm = "embeddings.LayerNorm";
  /// Behind the last layer; empty: there is none.
  std::string final_norm;
  /// Before a layer's index.
  std::string layers_prefix = "encoder.layer.";
  /// The layer on the first token that other heads than a language model's stand on.
  std::string pooler = "pooler.dense";
  /// Factor on the embeddings of words.
  float word_scale = 1.0f;
  EncoderPadding padding = {};
};

/// Reads the keys that BERT and its descendants share. `unused_positions`: how many of the position
/// embeddings no token can have.
EncoderConfig read_bert_config(const Checkpoint& checkpoint, const ImportOptions& options,
                               uint32_t unused_positions = 0,
                               const std::string& activation = "gelu");

/// Most tokens of one run: what the user asked for, or all positions.
uint32_t read_encoder_segment(const ImportOptions& options, uint32_t positions);

/// Names of the tensors that predict masked tokens, and what is between its matrices.
struct MaskedHead {
  std::string dense = "cls.predictions.transform.dense";
  std::string norm = "cls.predictions.transform.LayerNorm";
  std::string decoder = "cls.predictions.decoder";
  std::string bias = "cls.predictions.bias";
  schema::Activation activation = schema::Activation::Gelu;
};

/// One model being built, as its only entry point "encode".
class Encoder {
 public:
  Encoder(const Checkpoint& checkpoint, const EncoderConfig& config, Graph& graph);

  GraphBuilder& builder() { return builder_; }
  Parts& parts() { return parts_; }
  LayerBuilder& layer_builder() { return layers_; }
  /// The base, or nothing.
  const std::string& prefix() const { return prefix_; }
  uint32_t head_width() const { return config_.layer.heads.width; }
  /// Ids of the tokens that the layers have rows for, padding included; as many at most as `most_rows`.
  uint32_t tokens() const { return tokens_; }
  uint32_t most_rows() const;
  /// Which keys are no padding, by the caller; kNone if nobody asks.
  uint32_t attention_mask() const { return attention_mask_; }

  /// Sum of the embeddings of tokens, types and, unless kNone, positions, normalised.
  uint32_t embeddings(uint32_t position_ids);
  uint32_t layers(uint32_t x, const LayerBuilder::Attend& attend);
  /// Every token sees every one that is no padding.
  GraphBuilder::Attention full_attention(uint32_t k, uint32_t v) const;
  /// The same with the layer's three projections, unless `change` alters it.
  uint32_t attend(const LayerBuilder::Layer& layer,
                  const std::function<void(GraphBuilder::Attention&)>& change = {});

  /// Whatever head there are tensors for, or the hidden states themselves. `first_token`: the
  /// activation of a classifier that has a layer of its own on the first token.
  void finish(uint32_t x, const MaskedHead& masked, schema::Activation first_token);

  // The heads, for models that have others besides.

  void write_sizes();
  /// A head on the one row x, whose classes are the rows of its matrix.
  void classify(uint32_t x, const std::string& prefix);
  /// The same on each token's row.
  void classify_tokens(uint32_t x, const std::string& prefix);
  void fill_mask(uint32_t x, const MaskedHead& head, Bias dense_bias = Bias::kAll,
                 Bias decoder_bias = Bias::kAll);
  void hidden_states(uint32_t x);
  /// With a warning, if the checkpoint has the head that tells whether one sentence follows another.
  void leave_out_sentence_head(const std::string& name = "cls.seq_relationship");

 private:
  uint32_t pooled(uint32_t x);
  bool is_of_tokens() const;
  /// Logits by a matrix whose rows are classes, with their names.
  void class_logits(uint32_t x, const std::string& prefix);
  bool is_padded() const { return config_.padding.multiple > 1; }
  /// Ids for each token, with `value` for those that padding adds.
  uint32_t padded(uint32_t ids, uint32_t value);

  const Checkpoint& checkpoint_;
  const EncoderConfig& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  std::string prefix_;
  uint32_t tokens_ = 0;
  uint32_t attention_mask_ = GraphBuilder::kNone;
  uint32_t rows_symbol_ = 0;
  LayerBuilder layers_;
};

}  // namespace oxbow::convert
