// labml.ai's Feedback Transformer (labml_nn/transformers/feedback): all layers attend to one memory of earlier
// tokens, in which each is a mix of what all its layers gave. A token needs the memory of the one before, so
// they are taken one by one.

#include <algorithm>
#include <cmath>

#include "converter/blocks/labml_stack.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const LabmlStackShape& shape,
          const GraphBuilder::Entry& entry, Graph& graph)
      : checkpoint_(checkpoint),
        shape_(shape),
        memories_(entry.capacity - 1),
        stack_(checkpoint, shape, entry, graph) {
    heads_ = checkpoint.size("heads", 1, shape.width);
    require_multiple(checkpoint, "d_model", shape.width, "heads", heads_);
    shared_ = checkpoint.flag("kv_shared", checkpoint.has_tensor("transformer.key.linear.weight"));
  }

  void build() {
    schema::PositionsOptionsT positions;
    ids_ = builder().positions("positions", memories_ + 1, positions);
    const size_t kinds = shared_ ? 1 : shape_.layers;
    for (size_t i = 0; i < kinds; ++i) {
      const std::string name = shared_ ? "memory" : "memory.layer" + std::to_string(i);
      const uint32_t ring = builder().ring(name, memories_);
      sources_.push_back({builder().ring_state(name + ".key", ring, shape_.width),
                          builder().ring_state(name + ".value", ring, shape_.width)});
    }
    uint32_t x = stack_.embed();
    std::vector<uint32_t> outputs = {x};
    for (uint32_t i = 0; i < shape_.layers; ++i) {
      x = stack_.feed_forward(i, attended(i, x));
      outputs.push_back(x);
    }
    remember(mixed(outputs));
    stack_.finish(x, {{"heads", heads_}, {"memories", memories_}});
  }

 private:
  GraphBuilder& builder() { return stack_.builder(); }

  /// Distance 1 is the last row of the learned tables; no key has distance 0.
  std::vector<float> by_distance(const std::vector<float>& table, uint32_t width) const {
    std::vector<float> out;
    for (uint32_t d = 0; d <= memories_; ++d) {
      const std::vector<float> row = rows_of(table, width, memories_ - std::max(d, 1u), 1);
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }

  uint32_t attended(uint32_t index, uint32_t x) {
    const std::string name = LabmlStack::name(index);
    const std::string of = LabmlStack::tensors(index) + "attn.";
    const uint32_t width = shape_.width, head_width = width / heads_;
    const uint32_t q = stack_.parts().linear(name + ".q", stack_.normed(index, x),
                                             of + "query.linear", width, width, false);
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = heads_;
    options.scale = attention_scale(head_width);
    options.own = false;
    options.pattern.kind = schema::PatternKind::Full;
    options.sources = {sources_[shared_ ? 0 : index]};
    options.relative = {
        builder().weight(of + "key_pos_embeddings", memories_ + 1, width,
                         by_distance(checkpoint_.tensor(of + "key_pos_embeddings",
                                                        {memories_, heads_, head_width}),
                                     width)),
        builder().weight(
            of + "key_pos_bias", memories_ + 1, heads_,
            by_distance(checkpoint_.matrix(of + "key_pos_bias", memories_, heads_), heads_)),
        builder().weight(of + "query_pos_bias", 1, width,
                         checkpoint_.matrix(of + "query_pos_bias", heads_, head_width))};
    const uint32_t out = stack_.parts().linear(name + ".attention.out",
                                               builder().attention(name + ".attention", q, options),
                                               of + "output", width, width);
    return builder().add(name + ".attended", x,
                         builder().add(name + ".attention.seen", out, no_first_bias(name, of)));
  }

  /// The first token has nothing to attend to and skips this half: its bias is taken back.
  uint32_t no_first_bias(const std::string& name, const std::string& of) {
    std::vector<float> bias = checkpoint_.vector(of + "output.bias", shape_.width);
    for (float& value : bias) value = -value;
    return builder().partial_embedding(
        name + ".first", ids_,
        builder().weight(of + "output.bias.negative", 1, shape_.width, std::move(bias)), 0, 1.0f);
  }

  /// Each output by the softmax of its weight.
  uint32_t mixed(const std::vector<uint32_t>& outputs) {
    const std::vector<float> weights = checkpoint_.vector("transformer.weights", shape_.layers + 1);
    const double top = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (const float weight : weights) sum += std::exp(weight - top);
    uint32_t total = GraphBuilder::kNone;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto share = static_cast<float>(std::exp(weights[i] - top) / sum);
      const std::string name = "mix" + std::to_string(i);
      // A filter of one tap is a factor.
      schema::ConvolutionOptionsT options;
      options.heads = options.taps = 1;
      const uint32_t part =
          builder().convolution(name, outputs[i], builder().weight(name + ".share", 1, 1, {share}),
                                GraphBuilder::kNone, options);
      total = i == 0 ? part : builder().add(name + ".sum", total, part);
    }
    return total;
  }

  void remember(uint32_t memory) {
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      const std::string name = shared_ ? "memory" : LabmlStack::name(i) + ".memory";
      const std::string of = shared_ ? "transformer." : LabmlStack::tensors(i) + "attn.";
      const auto project = [&](const std::string& which) {
        // Layers with values of their own add a bias to them.
        const std::string matrix = of + which + ".linear";
        return stack_.parts().linear(name + ".new_" + which, memory, matrix, shape_.width,
                                     shape_.width, checkpoint_.has_tensor(matrix + ".bias"));
      };
      const uint32_t k = project("key"), v = project("value");
      builder().ring_push({k, v}, {sources_[i].k, sources_[i].v});
    }
  }

  const Checkpoint& checkpoint_;
  const LabmlStackShape& shape_;
  uint32_t memories_;
  LabmlStack stack_;
  uint32_t heads_ = 0;
  bool shared_ = false;
  uint32_t ids_ = 0;
  /// One for all layers, or one for each.
  std::vector<GraphBuilder::Source> sources_;
};

}  // namespace

void import_labml_feedback_transformer(const Checkpoint& checkpoint, const ImportOptions& options,
                                       Graph& graph) {
  const LabmlStackShape shape = read_labml_stack(checkpoint);
  if (options.max_segment > 1) {
    throw UsageError("--max-segment " + std::to_string(options.max_segment) +
                     " is too much, expected 1: this model takes tokens one by one");
  }
  GraphBuilder::Entry entry;
  entry.max_segment = 1;
  // The learned positions are those of P earlier tokens.
  entry.capacity = checkpoint.size("P", 1, kMaxSize, 4096) + 1;
  entry.any_pieces = true;
  Builder(checkpoint, shape, entry, graph).build();
}

}  // namespace oxbow::convert
