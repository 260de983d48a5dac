#include "converter/blocks/causal_decoder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "host/errors.h"

namespace oxbow::convert {

CausalDecoder::CausalDecoder(const Checkpoint& checkpoint, const ImportOptions& options,
                             const CausalShape& shape, const AttentionHeads& heads, Graph& graph)
    : checkpoint_(checkpoint),
      shape_(shape),
      heads_(heads),
      graph_(graph),
      builder_(graph),
      parts_(checkpoint, builder_) {
  plan(options);
  GraphBuilder::Entry entry;
  entry.vocabulary = shape.vocabulary;
  entry.max_segment = max_segment_;
  entry.capacity = endless_ ? 0 : context_;
  entry.any_pieces = true;
  builder_.begin_entry(entry);
  graph.model.task = schema::Task::Generate;

  if (!shape.frequencies.empty()) {
    const uint32_t frequencies = builder_.weight(
        "rope.frequencies", 1, static_cast<uint32_t>(shape.frequencies.size()), shape.frequencies);
    angles_ = builder_.rope_angles("rope.angles", frequencies);
    if (sinks_ != 0) {
      // Seen from a token far away the sinks stand right before the newest keys, as they would if
      // positions were counted among what is kept.
      pinned_angles_ =
          builder_.rope_angles("rope.pinned_angles", frequencies, sinks_ + context_ - 1);
    }
  }
  if (shape.rotary_gain != 1) {
    query_gains_ = rotary_gains("rope.query_gains", heads.queries());
    key_gains_ = rotary_gains("rope.key_gains", heads.keys());
  }
  window_angles_ = angles_;
  if (!shape.window_frequencies.empty()) {
    const uint32_t frequencies = builder_.weight(
        "rope.window_frequencies", 1, static_cast<uint32_t>(shape.window_frequencies.size()),
        shape.window_frequencies);
    window_angles_ = builder_.rope_angles("rope.window_angles", frequencies);
  }
  if (!shape.slopes.empty()) {
    slopes_ = builder_.weight("alibi.slopes", 1, heads.count, shape.slopes);
  }
}

uint32_t CausalDecoder::rotary_gains(const std::string& name, uint32_t width) {
  std::vector<float> gains;
  for (uint32_t i = 0; i < width; ++i) {
    const bool turned = i % heads_.width < 2 * shape_.frequencies.size();
    gains.push_back(turned ? shape_.rotary_gain : 1);
  }
  return builder_.weight(name, 1, width, gains);
}

void CausalDecoder::plan(const ImportOptions& options) {
  graph_.keeps_context = true;
  if (!shape_.patterns.empty() && options.ring) {
    throw UsageError(
        "--ring: what a query of this model sees is counted from the start of the stream");
  }
  const uint32_t window = is_mixed() ? 0 : shape_.window;
  endless_ = options.ring || window != 0;
  sinks_ = options.sinks;
  const uint32_t most = window != 0 ? window : shape_.length;
  context_ = options.context != 0 ? options.context : most;
  const std::string given = "--context " + std::to_string(context_);
  if (window != 0 && context_ > window) {
    throw UsageError(given + " is more than the " + std::to_string(window) +
                     " keys that a query of this model sees");
  }
  if (shape_.position_table && context_ > shape_.length) {
    throw UsageError(given + " is more than " + shape_.length_key + ", " +
                     std::to_string(shape_.length) + ": the model has no more positions");
  }
  if (endless_ && context_ < 2) {
    throw UsageError(given + " is too small for a ring, expected at least 2");
  }

  max_segment_ = read_segment(checkpoint_, options);
  // More tokens can never be given. With sinks it keeps a query that still has them among its own rows
  // near enough to see them where they are.
  if (!endless_ || sinks_ != 0) max_segment_ = std::min(max_segment_, context_);
  warn_of_lengths();
}

void CausalDecoder::warn_of_lengths() {
  if (!shape_.note.empty()) graph_.warnings.push_back(shape_.note);
  const std::string length = std::to_string(shape_.length);
  if (shape_.position_table && endless_) {
    graph_.warnings.push_back("the model has " + length +
                              " learned positions: with --ring they are counted from the first " +
                              "again after every " + length +
                              " tokens, which it was not trained for");
  } else if (!shape_.position_table && !shape_.length_key.empty() &&
             context_ + sinks_ > std::max(shape_.length, is_mixed() ? 0 : shape_.window)) {
    graph_.warnings.push_back("the context, " + std::to_string(context_ + sinks_) +
                              " tokens, is longer than " + shape_.length_key + ", " + length +
                              ", which the model was made for");
  }
}

uint32_t CausalDecoder::positions() {
  schema::PositionsOptionsT options;
  options.offset = shape_.unused_positions;
  options.wrap = endless_ ? shape_.length : 0;
  return builder_.positions("positions", shape_.unused_positions + shape_.length, options);
}

uint32_t CausalDecoder::reach(uint32_t layer) const {
  return has_own_window(layer) ? std::min(context_, shape_.window) : context_;
}

uint32_t CausalDecoder::ring_rows(uint32_t layer) const {
  if (!endless_ && !has_own_window(layer)) return context_;
  // A query's own row is not in the ring yet.
  return std::max(sinks(layer) + reach(layer) - 1, 1u);
}

schema::PatternT CausalDecoder::pattern(uint32_t layer) const {
  schema::PatternT pattern;
  if (!shape_.patterns.empty()) return shape_.patterns[layer];
  if (!endless_ && !has_own_window(layer)) return pattern;
  pattern.kind = schema::PatternKind::Window;
  pattern.before = reach(layer) - 1;
  pattern.first = sinks(layer);
  pattern.causal = true;
  return pattern;
}

uint32_t CausalDecoder::attend(uint32_t layer, uint32_t q, uint32_t k, uint32_t v, float scale) {
  const std::string index = std::to_string(layer), name = "layer" + index + ".attention";
  GraphBuilder::Attention options;
  options.heads = heads_.count;
  options.kv_heads = heads_.kv;
  options.scale = scale;
  options.pattern = pattern(layer);
  options.alibi = slopes_;
  if (angles_ != GraphBuilder::kNone) {
    const uint32_t angles = has_own_window(layer) ? window_angles_ : angles_;
    if (angles == angles_ && query_gains_ != GraphBuilder::kNone) {
      q = builder_.multiply(name + ".q.gained", q, query_gains_);
      k = builder_.multiply(name + ".k.gained", k, key_gains_);
    }
    if (pinned_angles_ != GraphBuilder::kNone && sinks(layer) != 0) {
      options.pinned_query =
          builder_.rope(name + ".q.pinned", q, pinned_angles_, heads_.count, false);
    }
    q = builder_.rope(name + ".q", q, angles, heads_.count, false);
    k = builder_.rope(name + ".k", k, angles, heads_.kv, false);
  }
  const uint32_t ring =
      builder_.ring("cache.layer" + index, ring_rows(layer), {.pinned = sinks(layer)});
  const uint32_t width = heads_.keys();
  const uint32_t keys = builder_.ring_state("key.layer" + index, ring, width);
  const uint32_t values = builder_.ring_state("value.layer" + index, ring, width);
  options.sources = {{keys, values}, {k, v}};
  const uint32_t attended = builder_.attention(name, q, options);
  builder_.debug_output(attended);
  builder_.ring_push({k, v}, {keys, values});
  return attended;
}

void CausalDecoder::layer_input(uint32_t index, uint32_t x) {
  builder_.debug_output(x, "hidden_states." + std::to_string(index));
}

void CausalDecoder::logits(uint32_t last, uint32_t weight, uint32_t bias, float cap) {
  layer_input(shape_.layers, last);
  builder_.logits(last, weight, bias, cap);
}

void CausalDecoder::describe(std::vector<std::pair<std::string, uint32_t>> sizes) {
  sizes.insert(sizes.end(), {{"context", context_},
                             {"heads", heads_.count},
                             {"kv_heads", heads_.kv},
                             {"layers", shape_.layers},
                             {"max_segment", max_segment_},
                             {"vocabulary", shape_.vocabulary}});
  if (sinks_ != 0) sizes.emplace_back("sinks", sinks_);
  write_metadata(checkpoint_, graph_, sizes);
  read_generation(checkpoint_, shape_.vocabulary, graph_);
}

std::vector<float> alibi_slopes(uint32_t heads) {
  const uint32_t power = std::bit_floor(heads);
  std::vector<float> out;
  for (uint32_t i = 1; i <= power; ++i) {
    out.push_back(static_cast<float>(std::exp2(-8.0 * i / power)));
  }
  for (uint32_t i = 1; out.size() < heads; i += 2) {
    out.push_back(static_cast<float>(std::exp2(-4.0 * i / power)));
  }
  return out;
}

}  // namespace oxbow::convert
