#pragma once

// One layer of a decoder or an encoder, as a table: which norms there are and where, how queries, keys
// and values are stored, what the feed-forward half looks like, and the names of the tensors.
//
//   sequential   y = x + attention(norm(x))     out = y + feed_forward(norm(y))
//   parallel     out = x + attention(norm(x)) + feed_forward(norm(x))
//   with cross   between the two halves: y + cross(norm(y)), attention over what another stack left
//
// Attention itself, with its keys that are kept, masks and positions, is the caller's.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converter/blocks/experts.h"
#include "converter/blocks/parts.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct AttentionHeads {
  uint32_t count = 0;
  /// Of keys and values; each is read by count / kv query heads.
  uint32_t kv = 0;
  uint32_t width = 0;

  uint32_t queries() const { return count * width; }
  uint32_t keys() const { return kv * width; }
};

/// As many for keys as for queries: `heads_key` divides the width, which is the value of `width_key`.
AttentionHeads read_heads(const Checkpoint& checkpoint, const std::string& width_key,
                          uint32_t width, const std::string& heads_key);

/// kStored: where the checkpoint has one.
enum class Bias { kNone, kAll, kStored };

struct NormKind {
  bool rms = false;
  /// Of layer norms; root mean square norms have none.
  Bias bias = Bias::kAll;
  float epsilon = 1e-5f;
  /// Added to stored weights, for models that multiply by 1 + weight.
  float offset = 0;
  /// Weights and biases are stored; without, layer norms have neither.
  bool affine = true;
};

/// How the rows of a packed projection lie.
enum class Packing {
  /// All queries, all keys, all values.
  kParts,
  /// For each key head its queries, its key and its value.
  kByHead,
};

/// Of one layer, behind its prefix and without .weight and .bias. What is not there has no name.
struct LayerNames {
  /// On what attention reads, on what it gives, and on the sum with the residual.
  std::string attention_norm{}, attention_out_norm{}, attention_sum_norm{};
  std::string feed_forward_norm{}, feed_forward_out_norm{}, feed_forward_sum_norm{};
  /// Apart, or together under `packed`.
  std::string q{}, k{}, v{}, packed{};
  /// Norms over the elements of each head.
  std::string q_norm{}, k_norm{};
  std::string attention_out{};
  /// Norms on what enters attention_out, and on what enters down.
  std::string attention_out_input_norm{}, down_input_norm{};
  /// The attention over another stack's rows; without an output there is none.
  std::string cross_norm{}, cross_sum_norm{}, cross_q{}, cross_k{}, cross_v{}, cross_out{};
  /// down(activation(up x)), or down(activation(gate x) * up x) if there is a gate, or gate and up
  /// together under `gate_up`.
  std::string gate{}, up{}, down{}, gate_up{};
  /// Stored and not needed, whole names.
  std::vector<std::string> ignored{};
};

struct TransformerLayer {
  uint32_t width = 0;
  uint32_t inner = 0;
  AttentionHeads heads;
  NormKind norm;
  Packing packing = Packing::kParts;
  /// Matrices are stored [inputs, outputs].
  bool transposed = false;
  Bias qkv_bias = Bias::kAll, out_bias = Bias::kAll;
  Bias gate_bias = Bias::kAll, up_bias = Bias::kAll, down_bias = Bias::kAll;
  /// Queries, keys and values are clamped to it; 0: they are not.
  float clip = 0;
  schema::Activation activation = schema::Activation::Gelu;
  bool parallel = false;
  /// The first layer has no norm before its attention: that of the embeddings serves.
  bool first_norm = true;
  /// Residuals are taken behind the norms before each half.
  bool residual_after_norm = false;
  /// Before the names of layers and states in the graph, where there are several stacks.
  std::string graph_prefix;
  LayerNames names;
  /// Instead of the feed-forward half of some layers: of one in `experts_every`, from the second on; of all if it is 1.
  Experts experts;
  uint32_t experts_every = 0;

  bool has_experts(uint32_t index) const {
    return experts_every == 1 || (experts_every != 0 && index % experts_every == 1);
  }
};

/// Builds layers after one table.
class LayerBuilder {
 public:
  /// All of these outlive it.
  LayerBuilder(const Checkpoint& checkpoint, const TransformerLayer& layer, GraphBuilder& builder,
               Parts& parts);

  /// One layer while it is being built.
  struct Layer {
    uint32_t index;
    /// For tensors of the graph.
    std::string name;
    /// Of its tensors in the checkpoint.
    std::string prefix;
    /// Rows that attention reads: normalised, if there is a norm before it.
    uint32_t x;
    /// The one over another stack's rows.
    bool is_cross = false;
  };
  /// From those rows to the heads' outputs side by side.
  using Attend = std::function<uint32_t(const Layer&)>;

  /// From the input of layer `index` to its output.
  uint32_t build(uint32_t index, const std::string& prefix, uint32_t x, const Attend& attend,
                 const Attend& cross = {});
  /// For project(): the attention over another stack's rows, of rows `x`.
  Layer cross_layer(uint32_t index, const std::string& prefix, uint32_t x) const;

  enum Part : uint32_t { kQueries, kKeys, kValues };
  /// One of the three projections of a layer's rows, with the norm over its heads if there is one.
  uint32_t project(const Layer& layer, Part part, const std::string& name);

  /// Over each of `groups` equal parts of a row, which have `width` elements and share their weights.
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of, uint32_t width,
                uint32_t groups = 1);
  /// Over a whole row; x itself when `of` is empty. `prefix` stands before it.
  uint32_t norm_if(const std::string& name, uint32_t x, const std::string& prefix,
                   const std::string& of);
  uint32_t linear(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out, Bias bias);

 private:
  /// A projection that is cut into several.
  struct Packed {
    std::string name;
    std::vector<float> weight, bias;
  };

  bool has_bias(const std::string& of, Bias bias) const;
  const Packed& read_packed(const std::string& of, uint32_t in, uint32_t out, Bias bias);
  /// Output rows `rows` of a packed projection, as its part number `part`.
  uint32_t part_of(const std::string& name, uint32_t x, const Packed& packed, uint32_t in,
                   const std::vector<uint32_t>& rows, uint32_t part);
  uint32_t cross_half(const Layer& layer, uint32_t x, const Attend& attend);
  uint32_t feed_forward(const std::string& name, uint32_t x, const std::string& prefix);
  uint32_t gated(const std::string& name, uint32_t x, const std::string& prefix);

  const Checkpoint& checkpoint_;
  const TransformerLayer& layer_;
  GraphBuilder& builder_;
  Parts& parts_;
  /// The one that was read last.
  Packed packed_;
  /// The bias of layer norms that have none.
  uint32_t zeros_ = GraphBuilder::kNone;
};

}  // namespace oxbow::convert
