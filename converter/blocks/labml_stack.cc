#include "converter/blocks/labml_stack.h"

namespace oxbow::convert {

LabmlStackShape read_labml_stack(const Checkpoint& checkpoint) {
  LabmlStackShape shape;
  shape.vocabulary = read_labml_vocabulary(checkpoint);
  shape.width = checkpoint.size("d_model", 1, kMaxSize);
  shape.inner = checkpoint.size("d_ff", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  shape.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  ignore_common_keys(checkpoint);
  return shape;
}

LabmlStack::LabmlStack(const Checkpoint& checkpoint, const LabmlStackShape& shape,
                       GraphBuilder::Entry entry, Graph& graph)
    : checkpoint_(checkpoint),
      shape_(shape),
      graph_(graph),
      builder_(graph),
      parts_(checkpoint, builder_) {
  entry.vocabulary = shape.vocabulary;
  builder_.begin_entry(entry);
  graph.model.task = schema::Task::Generate;
}

uint32_t LabmlStack::embed() {
  return builder_.embedding("embedded", builder_.tokens(),
                            parts_.matrix("src_embed.weight", shape_.vocabulary, shape_.width));
}

uint32_t LabmlStack::normed(uint32_t layer, uint32_t x) {
  return parts_.layer_norm(name(layer) + ".normed", x, tensors(layer) + "norm_self_attn",
                           shape_.width, shape_.epsilon);
}

uint32_t LabmlStack::feed_forward(uint32_t layer, uint32_t x) {
  const std::string to = name(layer) + ".ff", of = tensors(layer);
  const uint32_t z =
      parts_.layer_norm(to + ".normed", x, of + "norm_ff", shape_.width, shape_.epsilon);
  const uint32_t wide = builder_.activate(
      to + ".active",
      parts_.linear(to + ".wide", z, of + "feed_forward.layer1", shape_.width, shape_.inner),
      schema::Activation::Relu);
  return builder_.add(
      name(layer) + ".out", x,
      parts_.linear(to + ".out", wide, of + "feed_forward.layer2", shape_.inner, shape_.width));
}

void LabmlStack::finish(uint32_t x, std::vector<std::pair<std::string, uint32_t>> sizes) {
  const uint32_t last = parts_.layer_norm("last", builder_.take_rows("tail", x), "transformer.norm",
                                          shape_.width, shape_.epsilon);
  builder_.logits(last, parts_.matrix("generator.weight", shape_.vocabulary, shape_.width),
                  parts_.vector("generator.bias", shape_.vocabulary));
  sizes.insert(sizes.end(), {{"d_ff", shape_.inner},
                             {"d_model", shape_.width},
                             {"layers", shape_.layers},
                             {"vocabulary", shape_.vocabulary}});
  write_metadata(checkpoint_, graph_, sizes);
  graph_.model.metadata->time_major = true;
}

}  // namespace oxbow::convert
