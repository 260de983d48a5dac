#include "converter/blocks/t5.h"

#include <algorithm>
#include <cmath>

#include "converter/blocks/encoder_decoder.h"
#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Config {
  uint32_t vocabulary, width, heads, head_width, inner;
  uint32_t encoder_layers, decoder_layers;
  uint32_t buckets, max_distance;
  float epsilon;
  schema::Activation activation;
  bool gated, tied;
  TextLengths lengths;
  T5Encoder encoder;

  uint32_t attention_width() const { return heads * head_width; }
};

/// "relu", "gelu", "gated-gelu", ...: the activation, and whether another product gates it.
void read_feed_forward(const Checkpoint& checkpoint, Config& config) {
  std::string name = "relu";
  if (checkpoint.has_value("feed_forward_proj")) name = checkpoint.note("feed_forward_proj");
  const std::string gate = "gated-";
  config.gated = name.starts_with(gate);
  std::string activation = name.starts_with(gate) ? name.substr(gate.size()) : name;
  // The one name that does not mean what it says.
  if (name == "gated-gelu") activation = "gelu_new";
  if (!is_activation(activation)) {
    throw InputError("config.json: feed_forward_proj is " + printable(name) +
                     ", expected an activation such as relu, or gated- and an activation");
  }
  // Written beside the name by newer versions; they must say the same.
  checkpoint.choice("dense_act_fn", activation, {activation});
  if (checkpoint.flag("is_gated_act", config.gated) != config.gated) {
    throw InputError("config.json: is_gated_act contradicts feed_forward_proj, " + printable(name));
  }
  config.activation = read_activation(checkpoint, "dense_act_fn", activation);
}

Config read_config(const Checkpoint& checkpoint, const ImportOptions& options,
                   const T5Encoder& encoder) {
  Config config;
  config.encoder = encoder;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("d_model", 1, kMaxSize);
  config.heads = checkpoint.size("num_heads", 1, 4096);
  config.head_width = checkpoint.size("d_kv", 1, 4096);
  config.inner = checkpoint.size("d_ff", 1, kMaxSize);
  config.encoder_layers = checkpoint.size("num_layers", 1, kMaxLayers);
  config.decoder_layers =
      checkpoint.size("num_decoder_layers", 1, kMaxLayers, config.encoder_layers);
  // Half of the encoder's buckets are for keys ahead, half of those for one distance each: at least
  // one of each kind.
  config.buckets = checkpoint.size("relative_attention_num_buckets", 4, 4096, 32);
  config.max_distance = checkpoint.size("relative_attention_max_distance", config.buckets / 2 + 1,
                                        kMaxSize, std::max(128u, config.buckets / 2 + 1));
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-6));
  read_feed_forward(checkpoint, config);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  const uint32_t length = checkpoint.size("n_positions", 1, kMaxSize, encoder.length);
  config.lengths = read_text_lengths(options, length, length, "");
  ignore_common_keys(checkpoint);
  checkpoint.ignore_keys({"is_encoder_decoder", "output_past", "gradient_checkpointing"});
  return config;
}

/// The bucket of a key `distance` tokens back. Half of the buckets are for one distance each, the
/// others grow with its logarithm up to max_distance. In float, as the original computes it: whole
/// powers lie on the border of two buckets.
uint32_t bucket_of(uint32_t distance, uint32_t buckets, uint32_t max_distance) {
  const uint32_t exact = buckets / 2;
  if (distance < exact) return distance;
  const float ratio = static_cast<float>(distance) / static_cast<float>(exact);
  const float most = static_cast<float>(std::log(double(max_distance) / exact));
  const float place = static_cast<float>(std::log(double(ratio))) / most;
  const uint32_t more = static_cast<uint32_t>(place * static_cast<float>(buckets - exact));
  return std::min(exact + more, buckets - 1);
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {}

  void encode() {
    GraphBuilder::Entry entry;
    entry.name = "encode";
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = config_.lengths.source;
    entry.starts = true;
    builder_.begin_entry(entry);
    const uint32_t mask = builder_.input("attention_mask", 2, 1);
    const std::string self = config_.encoder.attention;
    GraphBuilder::Attention shape = biased_attention("encoder", self, mask);
    uint32_t x = embed("encoder");
    for (uint32_t i = 0; i < config_.encoder_layers; ++i) {
      const std::string name = "encoder.layer" + std::to_string(i);
      const std::string prefix = "encoder.block." + std::to_string(i) + ".layer.";
      const uint32_t z = norm(name + ".normed", x, prefix + "0.layer_norm");
      const std::string attention = prefix + "0." + self + ".";
      shape.sources.clear();
      if (config_.encoder.block != 0) shape.sources.push_back(block_keys(name, z, attention, mask));
      shape.sources.push_back(keys(name, z, attention));
      const uint32_t attended =
          builder_.attention(name + ".attended", project(name + ".q", z, attention + "q"), shape);
      x = add_output(name, x, attended, attention + "o");
      x = feed_forward("encoder", i, config_.encoder_layers, prefix + "1.", x);
    }
    const uint32_t last = norm("encoder.last", x, "encoder.final_layer_norm");
    builder_.debug_output(last, state_name("encoder", config_.encoder_layers));
    keep(last, mask);
    builder_.output("encoder_last_hidden_state", last);
  }

  void decode() {
    GraphBuilder::Entry entry;
    entry.tokens = "decoder_input_ids";
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = config_.lengths.segment;
    entry.capacity = config_.lengths.target;
    entry.any_pieces = true;
    builder_.begin_entry(entry);
    const DistanceTable table =
        distance_table("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                       config_.lengths.target, false);
    HeadShape shape = head_shape();
    shape.distance_bias = table.weight;
    shape.distance_zero = table.zero;
    uint32_t x = embed("decoder");
    for (uint32_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string name = "decoder.layer" + std::to_string(i);
      const std::string prefix = "decoder.block." + std::to_string(i) + ".layer.";
      const uint32_t z = norm(name + ".normed", x, prefix + "0.layer_norm");
      const std::string attention = prefix + "0.SelfAttention.";
      const uint32_t past =
          attend_to_past(builder_, name + ".self", project(name + ".q", z, attention + "q"),
                         keys(name, z, attention), shape, config_.lengths.target);
      x = add_output(name, x, past, attention + "o");
      const std::string cross = prefix + "1.EncDecAttention.";
      const uint32_t y = norm(name + ".cross.normed", x, prefix + "1.layer_norm");
      const uint32_t kept =
          attend_to_kept(builder_, name + ".cross.attended",
                         project(name + ".cross.q", y, cross + "q"), kept_.at(i), head_shape());
      x = add_output(name + ".cross", x, kept, cross + "o");
      x = feed_forward("decoder", i, config_.decoder_layers, prefix + "2.", x);
    }
    head(x);
  }

 private:
  static std::string state_name(const std::string& stack, uint32_t index) {
    return stack + ".hidden_states." + std::to_string(index);
  }

  HeadShape head_shape() const {
    HeadShape shape;
    shape.heads = config_.heads;
    shape.width = config_.attention_width();
    return shape;
  }

  struct DistanceTable {
    uint32_t weight, zero;
  };

  /// A bias for each bucket as one for each distance up to `length`: negative for keys ahead of the query, which only the
  /// encoder sees. All layers of a stack share that of its first one.
  DistanceTable distance_table(const std::string& name, uint32_t length, bool ahead) {
    const std::vector<float> table = checkpoint_.matrix(name, config_.buckets, config_.heads);
    const uint32_t reach = std::min(config_.max_distance, length);
    const uint32_t buckets = ahead ? config_.buckets / 2 : config_.buckets;
    std::vector<float> values;
    const auto add_row = [&](uint32_t bucket) {
      const std::vector<float> row = rows_of(table, config_.heads, bucket, 1);
      values.insert(values.end(), row.begin(), row.end());
    };
    for (uint32_t d = reach; ahead && d > 0; --d) {
      add_row(buckets + bucket_of(d, buckets, config_.max_distance));
    }
    for (uint32_t d = 0; d <= reach; ++d) add_row(bucket_of(d, buckets, config_.max_distance));
    const uint32_t zero = ahead ? reach : 0;
    return {builder_.weight(name, zero + reach + 1, config_.heads, std::move(values)), zero};
  }

  /// The encoder's, but for its sources.
  GraphBuilder::Attention biased_attention(const std::string& stack, const std::string& self,
                                           uint32_t mask) {
    const T5Encoder& encoder = config_.encoder;
    const std::string prefix = stack + ".block.0.layer.0." + self + ".";
    const DistanceTable own =
        distance_table(prefix + "relative_attention_bias.weight", config_.lengths.source, true);
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = config_.heads;
    attention.distance_bias = own.weight;
    attention.relative_zero = own.zero;
    attention.key_mask = mask;
    attention.pattern.kind = schema::PatternKind::Full;
    if (encoder.radius != 0) {
      attention.pattern.kind = schema::PatternKind::Window;
      attention.pattern.before = attention.pattern.after = encoder.radius;
    }
    if (encoder.block != 0) {
      const DistanceTable blocks = distance_table(prefix + "global_relative_attention_bias.weight",
                                                  config_.lengths.source, true);
      attention.sides = GraphBuilder::Sides{blocks.weight, encoder.block, blocks.zero};
      blocks_ = builder_.symbol("blocks", std::max(1u, config_.lengths.source / encoder.block));
    }
    return attention;
  }

  /// Keys and values of the blocks' sums.
  GraphBuilder::Source block_keys(const std::string& name, uint32_t x, const std::string& prefix,
                                  uint32_t mask) {
    GraphBuilder::PoolRows pool;
    pool.x = {x};
    pool.group = config_.encoder.block;
    pool.joins = true;
    pool.mask = mask;
    const uint32_t sums = builder_.pool_rows(name + ".blocks", pool, blocks_);
    const uint32_t z = norm(name + ".blocks.normed", sums, prefix + "global_input_layer_norm");
    return keys(name + ".blocks", z, prefix);
  }

  uint32_t project(const std::string& name, uint32_t x, const std::string& prefix) {
    return parts_.linear(name, x, prefix, config_.width, config_.attention_width(), false);
  }
  GraphBuilder::Source keys(const std::string& name, uint32_t x, const std::string& prefix) {
    return {project(name + ".k", x, prefix + "k"), project(name + ".v", x, prefix + "v")};
  }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& prefix) {
    return parts_.rms_norm(name, x, prefix, config_.width, config_.epsilon);
  }
  uint32_t add_output(const std::string& name, uint32_t x, uint32_t attended,
                      const std::string& prefix) {
    const uint32_t out = parts_.linear(name + ".o", attended, prefix, config_.attention_width(),
                                       config_.width, false);
    return builder_.add(name + ".sum", x, out);
  }

  uint32_t embed(const std::string& stack) {
    // The same table under another name, in some checkpoints.
    checkpoint_.ignore_tensor(stack + ".embed_tokens.weight");
    const uint32_t x =
        builder_.embedding(stack + ".embed", builder_.tokens(),
                           parts_.matrix("shared.weight", config_.vocabulary, config_.width));
    builder_.debug_output(x, state_name(stack, 0));
    return x;
  }

  uint32_t feed_forward(const std::string& stack, uint32_t index, uint32_t layers,
                        const std::string& prefix, uint32_t x) {
    const std::string name = stack + ".layer" + std::to_string(index) + ".ff";
    const std::string dense = prefix + "DenseReluDense.";
    const uint32_t z = norm(name + ".normed", x, prefix + "layer_norm");
    const auto wide = [&](const std::string& weight) {
      return parts_.linear(name + "." + weight, z, dense + weight, config_.width, config_.inner,
                           false);
    };
    uint32_t y = builder_.activate(name + ".active", wide(config_.gated ? "wi_0" : "wi"),
                                   config_.activation);
    if (config_.gated) y = builder_.multiply(name + ".gated", y, wide("wi_1"));
    const uint32_t out =
        parts_.linear(name + ".wo", y, dense + "wo", config_.inner, config_.width, false);
    const uint32_t sum = builder_.add(name + ".sum", x, out);
    // The last state is known behind the final norm.
    if (index + 1 < layers) builder_.debug_output(sum, state_name(stack, index + 1));
    return sum;
  }

  /// What the decoder will look at: rows that are no padding, through each layer's projections.
  void keep(uint32_t x, uint32_t mask) {
    const uint32_t symbol = builder_.symbol("source_rows", config_.lengths.source);
    const uint32_t rows = builder_.select_rows("encoder.rows", x, mask, symbol);
    for (uint32_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string name = "decoder.layer" + std::to_string(i) + ".cross";
      const std::string attention =
          "decoder.block." + std::to_string(i) + ".layer.1.EncDecAttention.";
      // Old checkpoints have one that is never read.
      checkpoint_.ignore_tensor(attention + "relative_attention_bias.weight");
      kept_.push_back(keep_for_decoder(builder_, name, keys(name, rows, attention),
                                       config_.attention_width(), config_.lengths.source));
    }
  }

  void head(uint32_t x) {
    const std::string prefix = "decoder.final_layer_norm";
    // Apart from the one below, so that what is looked at has no factor and all rows.
    builder_.debug_output(norm("decoder.last", x, prefix),
                          state_name("decoder", config_.decoder_layers));
    const uint32_t tail = builder_.take_rows("tail", x);
    if (!config_.tied) {
      builder_.logits(norm("tail.normed", tail, prefix),
                      parts_.matrix("lm_head.weight", config_.vocabulary, config_.width),
                      GraphBuilder::kNone);
      return;
    }
    checkpoint_.ignore_tensor("lm_head.weight");
    // The table of a tied model is larger than a head should be: the factor joins the norm's.
    std::vector<float> weight = checkpoint_.vector(prefix + ".weight", config_.width);
    const double factor = 1.0 / std::sqrt(double(config_.width));
    for (float& w : weight) w = static_cast<float>(w * factor);
    const uint32_t scaled =
        builder_.weight(prefix + ".weight.scaled", 1, config_.width, std::move(weight));
    builder_.logits(builder_.rms_norm("tail.normed", tail, scaled, config_.epsilon),
                    parts_.matrix("shared.weight", config_.vocabulary, config_.width),
                    GraphBuilder::kNone);
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  GraphBuilder builder_;
  Parts parts_;
  /// Keys and values of the encoder's output, for each layer of the decoder.
  std::vector<GraphBuilder::Source> kept_;
  /// Counts the blocks of a text.
  uint32_t blocks_ = GraphBuilder::kNone;
};

}  // namespace

void import_t5_model(const Checkpoint& checkpoint, const ImportOptions& options,
                     const T5Encoder& encoder, Graph& graph) {
  const Config config = read_config(checkpoint, options, encoder);
  Model model(checkpoint, config, graph);
  model.encode();
  model.decode();
  graph.model.task = schema::Task::Translate;
  graph.keeps_context = true;
  graph.model.generation = read_generation(checkpoint, graph);
  write_metadata(checkpoint, graph,
                 {{"d_ff", config.inner},
                  {"d_kv", config.head_width},
                  {"d_model", config.width},
                  {"heads", config.heads},
                  {"decoder_layers", config.decoder_layers},
                  {"encoder_layers", config.encoder_layers},
                  {"max_source", config.lengths.source},
                  {"max_target", config.lengths.target},
                  {"vocabulary", config.vocabulary}});
}

}  // namespace oxbow::convert
