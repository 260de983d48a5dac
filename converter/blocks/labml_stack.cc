#include "converter/blocks/labml_stack.h"

namespace oxbow::convert {

LabmlStackShape read_labml_stack(const Checkpoint& checkpoint) {
  LabmlStackShape shape;
  shape.vocabulary = read_labml_vocabulary(checkpoint);
  shape.width = checkpoint.size("d_model", 1, kMaxSize);
  shape.inner = checkpoint.size("d_ff", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  shape.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  shape.activation = read_labml_feed_forward(checkpoint);
  ignore_common_keys(checkpoint);
  return shape;
}

schema::Activation read_labml_feed_forward(const Checkpoint& checkpoint) {
  checkpoint.ignore_keys({"is_gated", "bias1", "bias2", "bias_gate"});
  return read_activation(checkpoint, "activation", "relu");
}

uint32_t labml_feed_forward(const Checkpoint& checkpoint, GraphBuilder& builder, Parts& parts,
                            const std::string& name, uint32_t z, const std::string& of,
                            const LabmlStackShape& shape) {
  const auto linear = [&](const char* to, uint32_t x, const char* which, uint32_t in,
                          uint32_t out) {
    return parts.linear(name + to, x, of + which, in, out,
                        checkpoint.has_tensor(of + which + ".bias"));
  };
  uint32_t active = builder.activate(
      name + ".active", linear(".wide", z, "layer1", shape.width, shape.inner), shape.activation);
  if (checkpoint.has_tensor(of + "linear_v.weight")) {
    active = builder.multiply(name + ".gated", active,
                              linear(".gate", z, "linear_v", shape.width, shape.inner));
  }
  return linear(".out", active, "layer2", shape.inner, shape.width);
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
  return builder_.add(
      name(layer) + ".out", x,
      labml_feed_forward(checkpoint_, builder_, parts_, to, z, of + "feed_forward.", shape_));
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
