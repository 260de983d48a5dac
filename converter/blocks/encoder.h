#pragma once

// Encoders built like BERT (Devlin et al. 2018): embeddings, then layers that normalise behind each
// residual addition, then one of a few heads. Tensors have the names BERT's have in Hugging Face's
// library; what a model does differently, mostly its attention, its importer in arch/ says.

#include <cstdint>
#include <functional>
#include <string>

#include "converter/checkpoint.h"
#include "converter/graph.h"
#include "converter/parts.h"

namespace oxbow::convert {

struct PostNormConfig {
  uint32_t vocabulary = 0;
  uint32_t types = 0;
  /// Tokens of one run at most, by the model's positions.
  uint32_t positions = 0;
  /// Of the embeddings; differs from `width` when there is a projection between them.
  uint32_t embedding_width = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t inner_width = 0;
  uint32_t layers = 0;
  uint32_t max_segment = 0;
  float epsilon = 1e-12f;
  schema::Activation activation = schema::Activation::Gelu;
  bool tied = true;
};

/// Reads the keys that BERT and its descendants share. `unused_positions`: how many of the position
/// embeddings no token can have.
PostNormConfig read_post_norm_config(const Checkpoint& checkpoint, const ImportOptions& options,
                                     uint32_t unused_positions = 0);

/// Names of the tensors that predict masked tokens, and what is between its matrices.
struct MaskedHead {
  std::string dense = "cls.predictions.transform.dense";
  std::string norm = "cls.predictions.transform.LayerNorm";
  std::string decoder = "cls.predictions.decoder";
  std::string bias = "cls.predictions.bias";
  schema::Activation activation = schema::Activation::Gelu;
};

/// One model being built, as its only entry point "encode".
class PostNormEncoder {
 public:
  /// `base`: what the names of all tensors but the heads' begin with in a model that has a head.
  PostNormEncoder(const Checkpoint& checkpoint, const PostNormConfig& config,
                  const std::string& base, Graph& graph);

  GraphBuilder& builder() { return builder_; }
  Parts& parts() { return parts_; }
  /// "bert." or nothing.
  const std::string& prefix() const { return prefix_; }
  uint32_t head_width() const { return config_.width / config_.heads; }
  /// Which keys are no padding, by the caller.
  uint32_t attention_mask() const { return attention_mask_; }

  /// Sum of the embeddings of tokens, types and, unless kNone, positions, normalised.
  uint32_t embeddings(uint32_t position_ids);

  struct Layer {
    uint32_t index;
    /// For tensors of the graph.
    std::string name;
    /// Of the attention's tensors in the checkpoint.
    std::string prefix;
    /// Input rows.
    uint32_t x;
  };
  /// From the input of a layer to the heads' outputs side by side.
  using Attend = std::function<uint32_t(const Layer&)>;
  uint32_t layers(uint32_t x, const Attend& attend);

  /// The linear layer `which` of the attention: query, key, value, ...
  uint32_t project(const Layer& layer, const std::string& which, uint32_t x);
  uint32_t project(const Layer& layer, const std::string& which) {
    return project(layer, which, layer.x);
  }
  /// Every token sees every one that is no padding.
  GraphBuilder::Attention full_attention(uint32_t k, uint32_t v) const;

  /// Whatever head there are tensors for, or the hidden states themselves. `first_token`: the
  /// activation of a classifier that has a layer of its own on the first token.
  void finish(uint32_t x, const MaskedHead& masked, schema::Activation first_token);

 private:
  uint32_t norm(const std::string& name, uint32_t x, const std::string& prefix, uint32_t width);
  uint32_t feed_forward(const Layer& layer, const std::string& prefix, uint32_t x);
  uint32_t pooled(uint32_t x);
  void classify(uint32_t x, const std::string& prefix);
  void fill_mask(uint32_t x, const MaskedHead& head);
  void write_sizes();

  const Checkpoint& checkpoint_;
  const PostNormConfig& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  std::string prefix_;
  uint32_t attention_mask_ = 0;
};

}  // namespace oxbow::convert
