#pragma once

// Decoders without a memory of their own: every token's keys and values are kept, and attention is
// causal. What differs from model to model (norms, projections, feed-forward layers) is the
// importers'; which keys are kept and what positions do to scores is here.
//
//   KV cache       | sinks | the newest, at most context - 1 |   rings: one for each layer
//   this run               own rows: query i sees those before it, and its own
//
// Layers with a window beside layers that see all keep what their window can still see.
//
// Without --ring the stream ends when `context` tokens were given. With it the oldest leave, but for
// the sinks, and each query sees the newest `context` keys and the sinks, however the stream is cut
// into runs.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_layer.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

/// Tokens kept when neither the model nor the user names a number.
inline constexpr uint32_t kDefaultContext = 2048;

/// A decoder as far as its attention goes.
struct CausalShape {
  uint32_t vocabulary = 0;
  uint32_t layers = 0;
  /// Tokens the model was made for, and the key of config.json that says so.
  uint32_t length = kDefaultContext;
  std::string length_key;
  /// What a user should know of it.
  std::string note;
  /// Positions are rows of a table with `length` rows.
  bool position_table = false;
  /// Rows of that table before the first token's, besides.
  uint32_t unused_positions = 0;
  /// Keys a query sees by the model's own rule, its own included; 0: all.
  uint32_t window = 0;
  /// With a window: for each layer, whether its queries see all keys nevertheless. Empty: none do.
  std::vector<bool> sees_all;
  /// What the queries of each layer see, where that is not all keys or a window of them. Empty: all keys.
  std::vector<schema::PatternT> patterns;
  /// Of rotary positions, one for each pair (i, i + pairs) of a head's first elements; empty: none.
  std::vector<float> frequencies;
  /// What turned elements of queries and keys are multiplied by.
  float rotary_gain = 1;
  /// Frequencies for layers with a window, without a gain; empty: they have those of all.
  std::vector<float> window_frequencies;
  /// Of ALiBi, one for each head; empty: none.
  std::vector<float> slopes;
};

class CausalDecoder {
 public:
  /// Begins the entry point. All of these outlive the decoder.
  CausalDecoder(const Checkpoint& checkpoint, const ImportOptions& options,
                const CausalShape& shape, const AttentionHeads& heads, Graph& graph);

  GraphBuilder& builder() { return builder_; }
  Parts& parts() { return parts_; }

  /// Ids of rows of the position table.
  uint32_t positions();

  /// What layer `layer` attends to with these new rows, whose keys and values are kept from now on.
  uint32_t attend(uint32_t layer, uint32_t q, uint32_t k, uint32_t v, float scale);

  /// Offers the input of layer `index` under the name that reference implementations use.
  void layer_input(uint32_t index, uint32_t x);
  /// The head: `last` are the rows behind the final norm.
  /// `cap` as of GraphBuilder::logits.
  void logits(uint32_t last, uint32_t weight, uint32_t bias = GraphBuilder::kNone, float cap = 0);

  /// Metadata with these sizes and those of the context; tokens that begin and end texts.
  void describe(std::vector<std::pair<std::string, uint32_t>> sizes);

 private:
  void plan(const ImportOptions& options);
  /// What each element of a row of heads is multiplied by.
  uint32_t rotary_gains(const std::string& name, uint32_t width);
  void warn_of_lengths();
  /// Some layers have a window, others see all keys that are kept.
  bool is_mixed() const { return !shape_.sees_all.empty(); }
  bool has_own_window(uint32_t layer) const { return is_mixed() && !shape_.sees_all[layer]; }
  /// Keys a query of this layer sees, its own included, and the first tokens it sees besides.
  uint32_t reach(uint32_t layer) const;
  uint32_t sinks(uint32_t layer) const { return has_own_window(layer) ? 0 : sinks_; }
  uint32_t ring_rows(uint32_t layer) const;
  schema::PatternT pattern(uint32_t layer) const;

  const Checkpoint& checkpoint_;
  const CausalShape& shape_;
  const AttentionHeads& heads_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  /// Of layers that have no window of their own beside others that see all.
  uint32_t context_ = 0;
  uint32_t sinks_ = 0;
  bool endless_ = false;
  uint32_t max_segment_ = 0;
  uint32_t angles_ = GraphBuilder::kNone;
  uint32_t query_gains_ = GraphBuilder::kNone, key_gains_ = GraphBuilder::kNone;
  uint32_t window_angles_ = GraphBuilder::kNone;
  uint32_t pinned_angles_ = GraphBuilder::kNone;
  uint32_t slopes_ = GraphBuilder::kNone;
};

/// The slopes of ALiBi for any number of heads: 2^(-8i/n) with n the largest power of two that is not
/// more, then every second one of those for 2n.
std::vector<float> alibi_slopes(uint32_t heads);

}  // namespace oxbow::convert
