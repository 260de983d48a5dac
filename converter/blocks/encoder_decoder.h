#pragma once

// What importers share of models that read one text and write another: the encoder's run starts a
// stream and leaves keys and values for every layer of the decoder, which all beams of a search
// share; the decoder keeps its own.

#include <cstdint>
#include <memory>
#include <string>

#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct TextLengths {
  /// Most tokens of the text that is read, and of the one that is written.
  uint32_t source = 0;
  uint32_t target = 0;
  /// Most tokens of one run of the decoder.
  uint32_t segment = 0;
};

/// What the user asked for, or else what the checkpoint was made for. When the checkpoint cannot do
/// more, `limit_key` is the key that says so; otherwise it is empty.
TextLengths read_text_lengths(const ImportOptions& options, uint32_t source, uint32_t target,
                              const std::string& limit_key);

/// Start, end, padding, forced and forbidden tokens by Hugging Face's keys.
std::unique_ptr<schema::GenerationT> read_generation(const Checkpoint& checkpoint, Graph& graph);

/// One layer's attention, apart from its projections.
struct HeadShape {
  uint32_t heads = 0;
  /// Of all heads together.
  uint32_t width = 0;
  float scale = 1.0f;
  /// See schema::AttentionOptions.
  uint32_t distance_bias = GraphBuilder::kNone;
  uint32_t distance_zero = 0;
};

/// Attention over rows of this run, all of them but those that `mask` hides.
uint32_t attend_to_all(GraphBuilder& builder, const std::string& name, uint32_t q,
                       GraphBuilder::Source keys, const HeadShape& shape, uint32_t mask);
/// Attention over all tokens so far, whose keys and values are kept in rings of `capacity` rows.
uint32_t attend_to_past(GraphBuilder& builder, const std::string& name, uint32_t q,
                        GraphBuilder::Source keys, const HeadShape& shape, uint32_t capacity);

/// Keeps keys and values made of the encoder's output; part of the encoder's entry point.
GraphBuilder::Source keep_for_decoder(GraphBuilder& builder, const std::string& name,
                                      GraphBuilder::Source keys, uint32_t width, uint32_t capacity);
/// Attention over what was kept; part of the decoder's entry point.
uint32_t attend_to_kept(GraphBuilder& builder, const std::string& name, uint32_t q,
                        GraphBuilder::Source kept, const HeadShape& shape);

}  // namespace oxbow::convert
