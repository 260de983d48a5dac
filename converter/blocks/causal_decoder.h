#pragma once

// Decoders without a memory of their own: every token's keys and values are kept, and attention is
// causal. What differs from model to model (norms, projections, feed-forward layers) is the
// importers'; which keys are kept and what positions do to scores is here.
//
//   kept keys      | sinks | the newest, at most context - 1 |   rings: one for each layer
//   this run               own rows: query i sees those before it, and its own
//
// Without --ring the stream ends when `context` tokens were given. With it the oldest leave, but for
// the sinks, and each query sees the newest `context` keys and the sinks, however the stream is cut
// into runs.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/checkpoint.h"
#include "converter/graph.h"
#include "converter/parts.h"

namespace oxbow::convert {

/// Tokens kept when neither the model nor the user names a number.
inline constexpr uint32_t kDefaultContext = 2048;

/// A decoder as far as its attention goes.
struct CausalShape {
  uint32_t vocabulary = 0;
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_width = 0;
  /// Tokens the model was made for, and the key of config.json that says so.
  uint32_t length = kDefaultContext;
  std::string length_key;
  /// Positions are rows of a table with `length` rows.
  bool position_table = false;
  /// Keys a query sees by the model's own rule, its own included; 0: all.
  uint32_t window = 0;
  /// Of rotary positions, one for each pair (i, i + pairs) of a head's first elements; empty: none.
  std::vector<float> frequencies;
  /// Of ALiBi, one for each head; empty: none.
  std::vector<float> slopes;
};

class CausalDecoder {
 public:
  /// Begins the entry point. All of these outlive the decoder.
  CausalDecoder(const Checkpoint& checkpoint, const ImportOptions& options,
                const CausalShape& shape, Graph& graph);

  GraphBuilder& builder() { return builder_; }
  Parts& parts() { return parts_; }

  /// Ids of rows of the position table.
  uint32_t positions();

  /// What layer `layer` attends to with these new rows, whose keys and values are kept from now on.
  uint32_t attend(uint32_t layer, uint32_t q, uint32_t k, uint32_t v, float scale);

  /// Offers the input of layer `index` under the name that reference implementations use.
  void layer_input(uint32_t index, uint32_t x);
  /// The head: `last` are the rows behind the final norm.
  void logits(uint32_t last, uint32_t weight, uint32_t bias = GraphBuilder::kNone);

  /// Metadata with these sizes and those of the context; tokens that begin and end texts.
  void describe(std::vector<std::pair<std::string, uint32_t>> sizes);

 private:
  void plan(const ImportOptions& options);
  void warn_of_lengths();
  uint32_t ring_rows() const;
  schema::PatternT pattern() const;

  const Checkpoint& checkpoint_;
  const CausalShape& shape_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  /// Keys a query sees, its own included, and the first tokens it sees besides.
  uint32_t context_ = 0;
  uint32_t sinks_ = 0;
  bool endless_ = false;
  uint32_t max_segment_ = 0;
  uint32_t angles_ = GraphBuilder::kNone;
  uint32_t pinned_angles_ = GraphBuilder::kNone;
  uint32_t slopes_ = GraphBuilder::kNone;
};

/// theta^(-2i/width) for the width / 2 pairs of a head's first `width` elements.
std::vector<float> rope_frequencies(double theta, uint32_t width);

/// The slopes of ALiBi for any number of heads: 2^(-8i/n) with n the largest power of two that is not
/// more, then every second one of those for 2n.
std::vector<float> alibi_slopes(uint32_t heads);

}  // namespace oxbow::convert
