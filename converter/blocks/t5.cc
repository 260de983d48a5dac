#include "converter/blocks/t5.h"

#include <algorithm>
#include <cmath>

#include "converter/blocks/translator.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Config {
  uint32_t vocabulary, width, buckets, max_distance;
  TextStack encoder, decoder;
  /// The head is the table of words; what enters it is divided by sqrt(width).
  bool tied, scaled;
  TextLengths lengths;
  T5Variant variant;
};

/// "relu", "gelu", "gated-gelu", ...: the activation, and whether another product gates it.
bool read_feed_forward(const Checkpoint& checkpoint, const T5Variant& variant,
                       schema::Activation* result) {
  std::string name = "relu";
  if (checkpoint.has_value("feed_forward_proj")) {
    name = checkpoint.note("feed_forward_proj");
  } else if (variant.experts.count != 0 && checkpoint.has_value("dense_act_fn")) {
    name = checkpoint.note("dense_act_fn");
  }
  const std::string gate = "gated-";
  const bool gated = name.starts_with(gate);
  std::string activation = gated ? name.substr(gate.size()) : name;
  // The one name that does not mean what it says.
  if (name == "gated-gelu") activation = "gelu_new";
  if (!is_activation(activation)) {
    checkpoint.refuse("feed_forward_proj is " + printable(name) +
                      ", expected an activation such as relu, or gated- and an activation");
    activation = "relu";
  }
  // Written beside the name by newer versions; they must say the same.
  checkpoint.choice("dense_act_fn", activation, {activation});
  if (checkpoint.flag("is_gated_act", gated) != gated) {
    checkpoint.refuse("is_gated_act contradicts feed_forward_proj, " + printable(name));
  }
  *result = read_activation(checkpoint, "dense_act_fn", activation);
  return gated;
}

/// Both have the same layers; the decoder's also look at the encoder's output.
TextStack make_stack(const std::string& name, uint32_t layers, bool gated, uint32_t vocabulary,
                     const std::string& attention, const T5Variant& variant,
                     const TransformerLayer& common) {
  TextStack stack;
  stack.name = name;
  stack.layers = layers;
  stack.vocabulary = vocabulary;
  stack.prefix = name + ".block.";
  stack.suffix = ".layer.";
  stack.keys_first = true;
  stack.shows_states = true;
  stack.layer = common;
  stack.layer.graph_prefix = name + ".";
  LayerNames& names = stack.layer.names;
  names.attention_norm = "0.layer_norm";
  names.q = "0." + attention + ".q";
  names.k = "0." + attention + ".k";
  names.v = "0." + attention + ".v";
  names.attention_out = "0." + attention + ".o";
  std::string dense = "1.";
  if (name == "decoder") {
    names.cross_norm = "1.layer_norm";
    names.cross_q = "1.EncDecAttention.q";
    names.cross_k = "1.EncDecAttention.k";
    names.cross_v = "1.EncDecAttention.v";
    names.cross_out = "1.EncDecAttention.o";
    // Old checkpoints have one that is never read.
    names.ignored = {"1.EncDecAttention.relative_attention_bias.weight"};
    dense = "2.";
  } else {
    stack.final_norm = "encoder.final_layer_norm";
  }
  names.feed_forward_norm = dense + "layer_norm";
  dense += variant.dense + ".";
  names.down = dense + "wo";
  const std::string wide = dense + "wi";
  names.up = gated ? wide + "_1" : wide;
  if (gated) names.gate = wide + "_0";
  Experts& experts = stack.layer.experts;
  experts = variant.experts;
  experts.width = common.width;
  experts.inner = common.inner;
  experts.activation = common.activation;
  for (std::string* part : {&experts.router, &experts.expert}) *part = dense + *part;
  stack.layer.experts_every =
      name == "decoder" ? variant.decoder_experts_every : variant.encoder_experts_every;
  // What is decoded token by token never fills an expert.
  if (name == "decoder") experts.capacity = 0;
  return stack;
}

Config read_config(const Checkpoint& checkpoint, const ImportOptions& options,
                   const T5Variant& variant) {
  Config config;
  config.variant = variant;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("d_model", 1, kMaxSize);
  TransformerLayer layer;
  layer.width = config.width;
  layer.heads.count = layer.heads.kv = checkpoint.size("num_heads", 1, 4096);
  layer.heads.width = checkpoint.size("d_kv", 1, 4096);
  layer.inner = checkpoint.size("d_ff", 1, kMaxSize);
  const uint32_t encoder_layers = checkpoint.size("num_layers", 1, kMaxLayers);
  const uint32_t decoder_layers =
      checkpoint.size("num_decoder_layers", 1, kMaxLayers, encoder_layers);
  // Half of the encoder's buckets are for keys ahead, half of those for one distance each: at least
  // one of each kind.
  config.buckets = checkpoint.size("relative_attention_num_buckets", 4, 4096, 32);
  config.max_distance = checkpoint.size("relative_attention_max_distance", config.buckets / 2 + 1,
                                        kMaxSize, std::max(128u, config.buckets / 2 + 1));
  layer.norm.rms = true;
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-6));
  layer.qkv_bias = layer.out_bias = Bias::kNone;
  layer.gate_bias = layer.up_bias = layer.down_bias = Bias::kNone;
  const bool gated = read_feed_forward(checkpoint, variant, &layer.activation);
  // Since version 5 of the library tie_word_embeddings is always true: another key tells of the factor, and a head that is
  // not the table is stored.
  config.scaled = config.tied = checkpoint.flag("tie_word_embeddings", true);
  if (checkpoint.has_value("scale_decoder_outputs")) {
    config.scaled = checkpoint.flag("scale_decoder_outputs", true);
    config.tied = !checkpoint.has_tensor("lm_head.weight");
  }
  const uint32_t length = checkpoint.size("n_positions", 1, kMaxSize, variant.length);
  config.lengths = read_text_lengths(options, length, length, "");
  ignore_common_keys(checkpoint);
  checkpoint.ignore_keys({"is_encoder_decoder", "output_past", "gradient_checkpointing"});
  config.encoder = make_stack("encoder", encoder_layers, gated, config.vocabulary,
                              variant.attention, variant, layer);
  config.decoder = make_stack("decoder", decoder_layers, gated, config.vocabulary, "SelfAttention",
                              variant, layer);
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

struct DistanceTable {
  uint32_t weight, zero;
};

/// A bias for each bucket as one for each distance: negative for keys ahead of the query, which only the encoder
/// sees. All layers of a stack share that of its first one.
DistanceTable distance_table(const Checkpoint& checkpoint, const Config& config,
                             const std::string& name, bool ahead, GraphBuilder& builder) {
  const uint32_t heads = config.encoder.layer.heads.count;
  const std::vector<float> table = checkpoint.matrix(name, config.buckets, heads);
  const uint32_t length = ahead ? config.lengths.source : config.lengths.target;
  const uint32_t reach = std::min(config.max_distance, length);
  const uint32_t buckets = ahead ? config.buckets / 2 : config.buckets;
  std::vector<float> values;
  const auto add_row = [&](uint32_t bucket) {
    const std::vector<float> row = rows_of(table, heads, bucket, 1);
    values.insert(values.end(), row.begin(), row.end());
  };
  for (uint32_t d = reach; ahead && d > 0; --d) {
    add_row(buckets + bucket_of(d, buckets, config.max_distance));
  }
  for (uint32_t d = 0; d <= reach; ++d) add_row(bucket_of(d, buckets, config.max_distance));
  const uint32_t zero = ahead ? reach : 0;
  return {builder.weight(name, zero + reach + 1, heads, std::move(values)), zero};
}

/// What the encoder's queries see, and with which biases; without its sources.
class EncoderAttention {
 public:
  EncoderAttention(const Checkpoint& checkpoint, const Config& config, Translator& translator)
      : config_(config), translator_(translator) {
    GraphBuilder& builder = translator.builder();
    const T5Variant& seen = config.variant;
    const std::string prefix = "encoder.block.0.layer.0." + seen.attention + ".";
    const DistanceTable own = distance_table(
        checkpoint, config, prefix + "relative_attention_bias.weight", true, builder);
    attention_.heads = attention_.kv_heads = config.encoder.layer.heads.count;
    attention_.distance_bias = own.weight;
    attention_.relative_zero = own.zero;
    attention_.key_mask = translator.mask();
    attention_.pattern.kind = schema::PatternKind::Full;
    if (seen.radius != 0) {
      attention_.pattern.kind = schema::PatternKind::Window;
      attention_.pattern.before = attention_.pattern.after = seen.radius;
    }
    if (seen.block == 0) return;
    const DistanceTable blocks = distance_table(
        checkpoint, config, prefix + "global_relative_attention_bias.weight", true, builder);
    attention_.sides = GraphBuilder::Sides{blocks.weight, seen.block, blocks.zero};
    blocks_ = builder.symbol("blocks", std::max(1u, config.lengths.source / seen.block));
  }

  uint32_t attend(const LayerBuilder::Layer& layer, uint32_t q, GraphBuilder::Source own) {
    GraphBuilder::Attention attention = attention_;
    if (config_.variant.block != 0) attention.sources.push_back(block_keys(layer));
    attention.sources.push_back(own);
    return translator_.builder().attention(layer.name + ".attention", q, attention);
  }

 private:
  /// Keys and values of the blocks' sums.
  GraphBuilder::Source block_keys(const LayerBuilder::Layer& layer) {
    GraphBuilder::PoolRows pool;
    pool.x = {layer.x};
    pool.group = config_.variant.block;
    pool.joins = true;
    pool.mask = translator_.mask();
    LayerBuilder::Layer blocks = layer;
    blocks.name += ".blocks";
    const uint32_t sums = translator_.builder().pool_rows(blocks.name, pool, blocks_);
    blocks.x = translator_.parts().rms_norm(
        blocks.name + ".normed", sums,
        layer.prefix + "0." + config_.variant.attention + ".global_input_layer_norm", config_.width,
        config_.encoder.layer.norm.epsilon);
    return translator_.encoder_keys(blocks);
  }

  const Config& config_;
  Translator& translator_;
  GraphBuilder::Attention attention_;
  /// Counts the blocks of a text.
  uint32_t blocks_ = GraphBuilder::kNone;
};

/// The decoder's own attention, with the bias of its first layer.
HeadShape biased_heads(const Checkpoint& checkpoint, const Config& config, GraphBuilder& builder) {
  const DistanceTable table = distance_table(
      checkpoint, config, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      false, builder);
  HeadShape shape = config.decoder.heads();
  shape.distance_bias = table.weight;
  shape.distance_zero = table.zero;
  return shape;
}

uint32_t embed(const Checkpoint& checkpoint, const Config& config, const TextStack& stack,
               Translator& translator) {
  // The same table under another name, in some checkpoints.
  checkpoint.ignore_tensor(stack.name + ".embed_tokens.weight");
  GraphBuilder& builder = translator.builder();
  return builder.embedding(
      stack.name + ".embed", builder.tokens(),
      translator.parts().matrix("shared.weight", config.vocabulary, config.width));
}

void add_head(const Checkpoint& checkpoint, const Config& config, uint32_t x,
              Translator& translator) {
  GraphBuilder& builder = translator.builder();
  Parts& parts = translator.parts();
  const float epsilon = config.decoder.layer.norm.epsilon;
  const std::string prefix = "decoder.final_layer_norm";
  // Apart from the one below, so that what is looked at has no factor and all rows.
  builder.debug_output(parts.rms_norm("decoder.last", x, prefix, config.width, epsilon),
                       Translator::state_name(config.decoder, config.decoder.layers));
  const uint32_t tail = builder.take_rows("tail", x);
  uint32_t normed = GraphBuilder::kNone;
  if (config.scaled) {
    // A table of words is larger than a head should be: the factor joins the norm's.
    std::vector<float> weight = checkpoint.vector(prefix + ".weight", config.width);
    const double factor = 1.0 / std::sqrt(double(config.width));
    for (float& w : weight) w = static_cast<float>(w * factor);
    const uint32_t scaled =
        builder.weight(prefix + ".weight.scaled", 1, config.width, std::move(weight));
    normed = builder.rms_norm("tail.normed", tail, scaled, epsilon);
  } else {
    normed = parts.rms_norm("tail.normed", tail, prefix, config.width, epsilon);
  }
  if (config.tied) checkpoint.ignore_tensor("lm_head.weight");
  const std::string head = config.tied ? "shared.weight" : "lm_head.weight";
  builder.logits(normed, parts.matrix(head, config.vocabulary, config.width), GraphBuilder::kNone);
}

}  // namespace

void import_t5_model(const Checkpoint& checkpoint, const ImportOptions& options,
                     const T5Variant& variant, Graph& graph) {
  const Config config = read_config(checkpoint, options, variant);
  const TextStack &encoder = config.encoder, &decoder = config.decoder;
  Translator translator(checkpoint, encoder, decoder, config.lengths, graph);
  translator.begin_encoder();
  EncoderAttention both_ways(checkpoint, config, translator);
  translator.encode(embed(checkpoint, config, encoder, translator),
                    [&](const LayerBuilder::Layer& layer, uint32_t q, GraphBuilder::Source own) {
                      return both_ways.attend(layer, q, own);
                    });
  translator.begin_decoder();
  const HeadShape back = biased_heads(checkpoint, config, translator.builder());
  const uint32_t x = translator.decode(embed(checkpoint, config, decoder, translator), back);
  add_head(checkpoint, config, x, translator);
  graph.model.task = schema::Task::Translate;
  graph.keeps_context = true;
  graph.model.generation = read_generation(checkpoint, graph);
  write_metadata(checkpoint, graph,
                 {{"d_ff", decoder.layer.inner},
                  {"d_kv", decoder.layer.heads.width},
                  {"d_model", config.width},
                  {"heads", decoder.layer.heads.count},
                  {"decoder_layers", decoder.layers},
                  {"encoder_layers", encoder.layers},
                  {"max_source", config.lengths.source},
                  {"max_target", config.lengths.target},
                  {"vocabulary", config.vocabulary}});
}

}  // namespace oxbow::convert
