#include "converter/blocks/transformer_layer.h"

#include <numeric>

namespace oxbow::convert {

AttentionHeads read_heads(const Checkpoint& checkpoint, const std::string& width_key,
                          uint32_t width, const std::string& heads_key) {
  const uint32_t heads = checkpoint.size(heads_key, 1, width);
  require_multiple(checkpoint, width_key, width, heads_key, heads);
  return {heads, heads, width / heads};
}

LayerBuilder::LayerBuilder(const Checkpoint& checkpoint, const TransformerLayer& layer,
                           GraphBuilder& builder, Parts& parts)
    : checkpoint_(checkpoint), layer_(layer), builder_(builder), parts_(parts) {
  if (!layer.norm.rms && layer.norm.affine && layer.norm.bias != Bias::kAll) {
    zeros_ = builder.weight("zeros", 1, layer.width, std::vector<float>(layer.width));
  }
}

bool LayerBuilder::has_bias(const std::string& of, Bias bias) const {
  return bias == Bias::kAll || (bias == Bias::kStored && checkpoint_.has_tensor(of + ".bias"));
}

uint32_t LayerBuilder::norm(const std::string& name, uint32_t x, const std::string& of,
                            uint32_t width, uint32_t groups) {
  const NormKind& kind = layer_.norm;
  if (kind.rms) {
    if (kind.offset == 0) {
      const uint32_t weight = parts_.vector(of + ".weight", width);
      return builder_.rms_norm(name, x, weight, kind.epsilon, groups);
    }
    std::vector<float> values = checkpoint_.vector(of + ".weight", width);
    for (float& value : values) value += kind.offset;
    const uint32_t weight = builder_.weight(of + ".weight", 1, width, std::move(values));
    return builder_.rms_norm(name, x, weight, kind.epsilon, groups);
  }
  if (!kind.affine) {
    return builder_.layer_norm(name, x, GraphBuilder::kNone, GraphBuilder::kNone, kind.epsilon,
                               groups);
  }
  // The oldest checkpoints have TensorFlow's names.
  const bool old = checkpoint_.has_tensor(of + ".gamma");
  const uint32_t bias =
      has_bias(of, kind.bias) ? parts_.vector(of + (old ? ".beta" : ".bias"), width) : zeros_;
  const uint32_t weight = parts_.vector(of + (old ? ".gamma" : ".weight"), width);
  return builder_.layer_norm(name, x, weight, bias, kind.epsilon, groups);
}

uint32_t LayerBuilder::norm_if(const std::string& name, uint32_t x, const std::string& prefix,
                               const std::string& of) {
  return of.empty() ? x : norm(name, x, prefix + of, layer_.width);
}

uint32_t LayerBuilder::linear(const std::string& name, uint32_t x, const std::string& of,
                              uint32_t in, uint32_t out, Bias bias) {
  const bool biased = has_bias(of, bias);
  if (!layer_.transposed) return parts_.linear(name, x, of, in, out, biased);
  const uint32_t vector = biased ? parts_.vector(of + ".bias", out) : GraphBuilder::kNone;
  const std::string weight = of + ".weight";
  return builder_.linear(
      name, x,
      builder_.weight(weight, out, in, transposed(checkpoint_.matrix(weight, in, out), in, out)),
      vector);
}

const LayerBuilder::Packed& LayerBuilder::read_packed(const std::string& of, uint32_t in,
                                                      uint32_t out, Bias bias) {
  if (packed_.name == of) return packed_;
  packed_.name = of;
  packed_.weight = layer_.transposed
                       ? transposed(checkpoint_.matrix(of + ".weight", in, out), in, out)
                       : checkpoint_.matrix(of + ".weight", out, in);
  packed_.bias.clear();
  if (has_bias(of, bias)) packed_.bias = checkpoint_.vector(of + ".bias", out);
  return packed_;
}

uint32_t LayerBuilder::part_of(const std::string& name, uint32_t x, const Packed& packed,
                               uint32_t in, const std::vector<uint32_t>& rows, uint32_t part) {
  const uint32_t count = static_cast<uint32_t>(rows.size());
  const std::string suffix = "." + std::to_string(part);
  uint32_t bias = GraphBuilder::kNone;
  if (!packed.bias.empty()) {
    std::vector<float> values;
    for (const uint32_t row : rows) values.push_back(packed.bias[row]);
    bias = builder_.weight(packed.name + ".bias" + suffix, 1, count, std::move(values));
  }
  std::vector<float> values;
  values.reserve(size_t{count} * in);
  for (const uint32_t row : rows) {
    const float* from = packed.weight.data() + size_t{row} * in;
    values.insert(values.end(), from, from + in);
  }
  return builder_.linear(
      name, x, builder_.weight(packed.name + ".weight" + suffix, count, in, std::move(values)),
      bias);
}

uint32_t LayerBuilder::project(const Layer& layer, Part part, const std::string& name) {
  const AttentionHeads& heads = layer_.heads;
  const uint32_t count = part == kQueries ? heads.queries() : heads.keys();
  const LayerNames& names = layer_.names;
  uint32_t y;
  if (names.packed.empty()) {
    const std::string* own[] = {&names.q, &names.k, &names.v};
    const std::string* cross[] = {&names.cross_q, &names.cross_k, &names.cross_v};
    const std::string& of = *(layer.is_cross ? cross : own)[part];
    y = linear(name, layer.x, layer.prefix + of, layer_.width, count, layer_.qkv_bias);
  } else {
    const Packed& packed = read_packed(layer.prefix + names.packed, layer_.width,
                                       heads.queries() + 2 * heads.keys(), layer_.qkv_bias);
    std::vector<uint32_t> rows(count);
    if (layer_.packing == Packing::kParts) {
      const uint32_t first = part == kQueries ? 0 : heads.queries() + (part - 1) * heads.keys();
      std::iota(rows.begin(), rows.end(), first);
    } else {
      const uint32_t group = heads.queries() / heads.kv;
      const uint32_t own = part == kQueries ? group : heads.width;
      const uint32_t first = part == kQueries ? 0 : group + (part - 1) * heads.width;
      for (uint32_t i = 0; i < count; ++i) {
        rows[i] = i / own * (group + 2 * heads.width) + first + i % own;
      }
    }
    y = part_of(name, layer.x, packed, layer_.width, rows, part);
  }
  if (layer_.clip != 0) {
    y = builder_.activate(name + ".clipped", y, schema::Activation::Clamp, layer_.clip);
  }
  const std::string none;
  const std::string& of = part == kQueries ? names.q_norm : part == kKeys ? names.k_norm : none;
  if (of.empty()) return y;
  return norm(name + ".normed", y, layer.prefix + of, heads.width, count / heads.width);
}

uint32_t LayerBuilder::build(uint32_t index, const std::string& prefix, uint32_t x,
                             const Attend& attend, const Attend& cross) {
  const LayerNames& names = layer_.names;
  const std::string name = layer_.graph_prefix + "layer" + std::to_string(index);
  for (const std::string& tensor : names.ignored) checkpoint_.ignore_tensor(prefix + tensor);

  const bool has_norm = index != 0 || layer_.first_norm;
  const uint32_t z = has_norm ? norm_if(name + ".normed", x, prefix, names.attention_norm) : x;
  uint32_t attended = attend({index, name, prefix, z, false});
  if (!names.attention_out_input_norm.empty()) {
    attended = norm(name + ".attention.heads.normed", attended,
                    prefix + names.attention_out_input_norm, layer_.heads.queries());
  }
  const uint32_t a = norm_if(name + ".attention.out.normed",
                             linear(name + ".attention.out", attended, prefix + names.attention_out,
                                    layer_.heads.queries(), layer_.width, layer_.out_bias),
                             prefix, names.attention_out_norm);
  const bool norms_sum = !names.attention_sum_norm.empty();
  const uint32_t sum = builder_.add(name + (norms_sum ? ".attention.sum" : ".attended"),
                                    layer_.residual_after_norm ? z : x, a);
  uint32_t y = norm_if(name + ".attention.normed", sum, prefix, names.attention_sum_norm);
  if (!names.cross_out.empty()) y = cross_half(cross_layer(index, prefix, y), y, cross);

  // Of parallel halves the second may have a norm of its own, or the first one's.
  const bool same_norm = layer_.parallel && names.feed_forward_norm.empty();
  const uint32_t w = same_norm ? z
                               : norm_if(name + ".ff.normed", layer_.parallel ? x : y, prefix,
                                         names.feed_forward_norm);
  const uint32_t ff =
      layer_.has_experts(index)
          ? add_experts(checkpoint_, layer_.experts, name + ".ff", prefix, w, builder_, parts_).y
          : feed_forward(name + ".ff", w, prefix);
  const uint32_t f = norm_if(name + ".ff.out.normed", ff, prefix, names.feed_forward_out_norm);
  const bool norms_out = !names.feed_forward_sum_norm.empty();
  const uint32_t out =
      builder_.add(name + (norms_out ? ".ff.sum" : ".out"), layer_.residual_after_norm ? w : y, f);
  return norm_if(layer_.graph_prefix + "hidden_states." + std::to_string(index + 1), out, prefix,
                 names.feed_forward_sum_norm);
}

LayerBuilder::Layer LayerBuilder::cross_layer(uint32_t index, const std::string& prefix,
                                              uint32_t x) const {
  return {index, layer_.graph_prefix + "layer" + std::to_string(index) + ".cross", prefix, x, true};
}

uint32_t LayerBuilder::cross_half(const Layer& layer, uint32_t x, const Attend& attend) {
  const LayerNames& names = layer_.names;
  const std::string& name = layer.name;
  Layer normed = layer;
  normed.x = norm_if(name + ".normed", x, layer.prefix, names.cross_norm);
  const uint32_t out = linear(name + ".out", attend(normed), layer.prefix + names.cross_out,
                              layer_.heads.queries(), layer_.width, layer_.out_bias);
  return norm_if(name + ".sum.normed", builder_.add(name + ".sum", x, out), layer.prefix,
                 names.cross_sum_norm);
}

uint32_t LayerBuilder::feed_forward(const std::string& name, uint32_t x,
                                    const std::string& prefix) {
  const LayerNames& names = layer_.names;
  uint32_t wide;
  if (names.gate.empty() && names.gate_up.empty()) {
    wide = builder_.activate(
        name + ".active",
        linear(name + ".wide", x, prefix + names.up, layer_.width, layer_.inner, layer_.up_bias),
        layer_.activation);
  } else {
    wide = gated(name, x, prefix);
  }
  if (!names.down_input_norm.empty()) {
    wide = norm(name + ".wide.normed", wide, prefix + names.down_input_norm, layer_.inner);
  }
  return linear(name + ".out", wide, prefix + names.down, layer_.inner, layer_.width,
                layer_.down_bias);
}

uint32_t LayerBuilder::gated(const std::string& name, uint32_t x, const std::string& prefix) {
  const LayerNames& names = layer_.names;
  const uint32_t width = layer_.width, inner = layer_.inner;
  const auto part = [&](const std::string& suffix, uint32_t index) {
    const std::string& of = index == 0 ? names.gate : names.up;
    if (names.gate_up.empty()) {
      return linear(name + suffix, x, prefix + of, width, inner,
                    index == 0 ? layer_.gate_bias : layer_.up_bias);
    }
    std::vector<uint32_t> rows(inner);
    std::iota(rows.begin(), rows.end(), index * inner);
    const Packed& packed = read_packed(prefix + names.gate_up, width, 2 * inner, layer_.up_bias);
    return part_of(name + suffix, x, packed, width, rows, index);
  };
  const uint32_t gate = builder_.activate(name + ".gate", part(".gate_in", 0), layer_.activation);
  const uint32_t up = part(".up", 1);
  return builder_.multiply(name + ".gated", gate, up);
}

}  // namespace oxbow::convert
