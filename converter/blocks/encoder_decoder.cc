#include "converter/blocks/encoder_decoder.h"

#include <algorithm>

#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

uint32_t chosen_length(const std::string& option, uint32_t asked, uint32_t most,
                       const std::string& limit_key) {
  if (asked > most && !limit_key.empty()) {
    throw UsageError("--" + option + " is " + std::to_string(asked) + ", expected at most " +
                     std::to_string(most) + ": " + limit_key + " of config.json");
  }
  return asked == 0 ? most : asked;
}

GraphBuilder::Attention attention_over(GraphBuilder::Source source, const HeadShape& shape) {
  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = shape.heads;
  attention.scale = shape.scale;
  attention.sources = {source};
  attention.distance_bias = shape.distance_bias;
  attention.relative_zero = shape.distance_zero;
  return attention;
}

GraphBuilder::Source key_value_ring(GraphBuilder& builder, const std::string& name, uint32_t width,
                                    uint32_t capacity, bool shared) {
  RingOptions options;
  options.shared = shared;
  const uint32_t ring = builder.ring(name, capacity, options);
  return {builder.ring_state(name + ".k", ring, width),
          builder.ring_state(name + ".v", ring, width)};
}

}  // namespace

TextLengths read_text_lengths(const ImportOptions& options, uint32_t source, uint32_t target,
                              const std::string& limit_key) {
  if (options.ring || options.sinks != 0) {
    throw UsageError(
        "--ring and --sinks are for endless streams; a text that is translated has an end");
  }
  TextLengths lengths;
  lengths.source = chosen_length("max-segment", options.max_segment, source, limit_key);
  lengths.target = chosen_length("context", options.context, target, limit_key);
  lengths.segment = std::min(kDefaultSegment, lengths.target);
  if (options.max_segment != 0) lengths.segment = std::min(lengths.segment, options.max_segment);
  return lengths;
}

std::unique_ptr<schema::GenerationT> read_generation(const Checkpoint& checkpoint, Graph& graph) {
  auto generation = std::make_unique<schema::GenerationT>();
  generation->pad_token = checkpoint.token("pad_token_id", -1);
  generation->end_token = checkpoint.token("eos_token_id", -1);
  generation->start_token = checkpoint.token("decoder_start_token_id", generation->pad_token);
  generation->forced_last_token = checkpoint.token("forced_eos_token_id", -1);
  bool phrases = false;
  for (const std::vector<int32_t>& words : checkpoint.token_lists("bad_words_ids")) {
    phrases = phrases || words.size() > 1;
    if (words.size() == 1) generation->forbidden_tokens.push_back(words[0]);
  }
  if (phrases) {
    graph.warnings.push_back(
        "bad_words_ids has phrases of several tokens; only single tokens are forbidden");
  }
  return generation;
}

uint32_t attend_to_all(GraphBuilder& builder, const std::string& name, uint32_t q,
                       GraphBuilder::Source keys, const HeadShape& shape, uint32_t mask) {
  GraphBuilder::Attention attention = attention_over(keys, shape);
  attention.pattern.kind = schema::PatternKind::Full;
  attention.key_mask = mask;
  return builder.attention(name, q, attention);
}

uint32_t attend_to_past(GraphBuilder& builder, const std::string& name, uint32_t q,
                        GraphBuilder::Source keys, const HeadShape& shape, uint32_t capacity) {
  const GraphBuilder::Source past = key_value_ring(builder, name, shape.width, capacity, false);
  GraphBuilder::Attention attention = attention_over(past, shape);
  attention.sources.push_back(keys);
  const uint32_t attended = builder.attention(name + ".attended", q, attention);
  builder.ring_push({keys.k, keys.v}, {past.k, past.v});
  return attended;
}

GraphBuilder::Source keep_for_decoder(GraphBuilder& builder, const std::string& name,
                                      GraphBuilder::Source keys, uint32_t width,
                                      uint32_t capacity) {
  const GraphBuilder::Source kept = key_value_ring(builder, name, width, capacity, true);
  builder.ring_push({keys.k, keys.v}, {kept.k, kept.v});
  return kept;
}

uint32_t attend_to_kept(GraphBuilder& builder, const std::string& name, uint32_t q,
                        GraphBuilder::Source kept, const HeadShape& shape) {
  GraphBuilder::Attention attention = attention_over(kept, shape);
  attention.own = false;
  attention.pattern.kind = schema::PatternKind::Full;
  return builder.attention(name, q, attention);
}

}  // namespace oxbow::convert
