#include "converter/blocks/translator.h"

namespace oxbow::convert {
namespace {

std::string layer_prefix(const TextStack& stack, uint32_t index) {
  return stack.prefix + std::to_string(index) + stack.suffix;
}

}  // namespace

HeadShape TextStack::heads() const {
  HeadShape shape;
  shape.heads = layer.heads.count;
  shape.width = layer.heads.queries();
  shape.scale = scale;
  return shape;
}

Translator::Translator(const Checkpoint& checkpoint, const TextStack& encoder,
                       const TextStack& decoder, const TextLengths& lengths, Graph& graph)
    : encoder_(encoder),
      decoder_(decoder),
      lengths_(lengths),
      builder_(graph),
      parts_(checkpoint, builder_),
      encoder_layers_(checkpoint, encoder.layer, builder_, parts_),
      decoder_layers_(checkpoint, decoder.layer, builder_, parts_) {}

void Translator::begin_encoder() {
  GraphBuilder::Entry entry;
  entry.name = "encode";
  entry.vocabulary = encoder_.vocabulary;
  entry.max_segment = lengths_.source;
  entry.starts = true;
  builder_.begin_entry(entry);
  mask_ = builder_.input("attention_mask", 2, 1);
}

void Translator::encode(uint32_t x, const HeadShape& heads) {
  encode(x, [&](const LayerBuilder::Layer& layer, uint32_t q, GraphBuilder::Source own) {
    return attend_to_all(builder_, layer.name + ".attention", q, own, heads, mask_);
  });
}

void Translator::encode(uint32_t x, const Attend& attend) {
  for (uint32_t i = 0; i < encoder_.layers; ++i) {
    show(encoder_, i, x);
    x = encoder_layers_.build(
        i, layer_prefix(encoder_, i), x, [&](const LayerBuilder::Layer& layer) {
          uint32_t q = 0;
          const GraphBuilder::Source own = keys_and_queries(encoder_, encoder_layers_, layer, &q);
          return attend(layer, q, own);
        });
  }
  x = encoder_layers_.norm_if("encoder.final_norm", x, "", encoder_.final_norm);
  show(encoder_, encoder_.layers, x);
  keep(x);
  builder_.output("encoder_last_hidden_state", x);
}

void Translator::begin_decoder() {
  GraphBuilder::Entry entry;
  entry.tokens = "decoder_input_ids";
  entry.vocabulary = decoder_.vocabulary;
  entry.max_segment = lengths_.segment;
  entry.capacity = lengths_.target;
  entry.any_pieces = true;
  builder_.begin_entry(entry);
}

uint32_t Translator::decode(uint32_t x, const HeadShape& heads) {
  for (uint32_t i = 0; i < decoder_.layers; ++i) {
    show(decoder_, i, x);
    const auto attend = [&](const LayerBuilder::Layer& layer) {
      uint32_t q = 0;
      const GraphBuilder::Source own = keys_and_queries(decoder_, decoder_layers_, layer, &q);
      return attend_to_past(builder_, layer.name + ".self", q, own, heads, lengths_.target);
    };
    const auto cross = [&](const LayerBuilder::Layer& layer) {
      const uint32_t q =
          decoder_layers_.project(layer, LayerBuilder::kQueries, layer.name + ".query");
      return attend_to_kept(builder_, layer.name + ".attention", q, kept_.at(i), decoder_.heads());
    };
    x = decoder_layers_.build(i, layer_prefix(decoder_, i), x, attend, cross);
  }
  return x;
}

std::string Translator::state_name(const TextStack& stack, uint32_t index) {
  return stack.name + ".hidden_states." + std::to_string(index);
}

GraphBuilder::Source Translator::keys(LayerBuilder& layers, const LayerBuilder::Layer& layer) {
  const uint32_t k = layers.project(layer, LayerBuilder::kKeys, layer.name + ".key");
  return {k, layers.project(layer, LayerBuilder::kValues, layer.name + ".value")};
}

GraphBuilder::Source Translator::keys_and_queries(const TextStack& stack, LayerBuilder& layers,
                                                  const LayerBuilder::Layer& layer, uint32_t* q) {
  const auto queries = [&] {
    return layers.project(layer, LayerBuilder::kQueries, layer.name + ".query");
  };
  if (!stack.keys_first) *q = queries();
  const GraphBuilder::Source own = keys(layers, layer);
  if (stack.keys_first) *q = queries();
  return own;
}

void Translator::keep(uint32_t x) {
  const uint32_t symbol = builder_.symbol("source_rows", lengths_.source);
  const uint32_t rows = builder_.select_rows("encoder.rows", x, mask_, symbol);
  for (uint32_t i = 0; i < decoder_.layers; ++i) {
    const LayerBuilder::Layer layer =
        decoder_layers_.cross_layer(i, layer_prefix(decoder_, i), rows);
    kept_.push_back(keep_for_decoder(builder_, layer.name, keys(decoder_layers_, layer),
                                     decoder_.layer.heads.keys(), lengths_.source));
  }
}

void Translator::show(const TextStack& stack, uint32_t index, uint32_t x) {
  if (stack.shows_states) builder_.debug_output(x, state_name(stack, index));
}

}  // namespace oxbow::convert
