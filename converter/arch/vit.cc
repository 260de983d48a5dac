// Vision Transformer (Dosovitskiy et al. 2020) as in Hugging Face's library: a classifier of images, or without its
// head the hidden states of all patches.

#include "converter/blocks/image.h"
#include "converter/blocks/transformer_layer.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Vit {
  ImageGrid grid;
  uint32_t layers = 0;
  TransformerLayer layer;
};

Vit read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Vit config;
  config.grid = read_image_grid(checkpoint, 224, 16, "num_channels");
  TransformerLayer& layer = config.layer;
  layer.width = checkpoint.size("hidden_size", 1, kMaxSize, 768);
  layer.heads = read_heads(checkpoint, "hidden_size", layer.width, "num_attention_heads");
  layer.inner = checkpoint.size("intermediate_size", 1, kMaxSize, 3072);
  config.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers, 12);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-12));
  layer.activation = read_activation(checkpoint, "hidden_act", "gelu");
  layer.qkv_bias = checkpoint.flag("qkv_bias", true) ? Bias::kAll : Bias::kNone;
  layer.names = {.attention_norm = "layernorm_before",
                 .feed_forward_norm = "layernorm_after",
                 .q = "attention.attention.query",
                 .k = "attention.attention.key",
                 .v = "attention.attention.value",
                 .attention_out = "attention.output.dense",
                 .up = "intermediate.dense",
                 .down = "output.dense"};
  if (options.max_segment != 0) {
    throw UsageError("--max-segment is for texts; the size of an image is the model's");
  }
  require_flag(checkpoint, "is_decoder", false);
  require_flag(checkpoint, "is_encoder_decoder", false);
  // Of a head for masked images, which is refused by its tensors.
  checkpoint.ignore_keys({"encoder_stride", "tie_word_embeddings"});
  ignore_common_keys(checkpoint);
  return config;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Vit& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_),
        layers_(checkpoint, config.layer, builder_, parts_),
        prefix_(optional_prefix(checkpoint, "vit.", "embeddings.cls_token")) {}

  void build() {
    uint32_t x = embed();
    for (uint32_t i = 0; i < config_.layers; ++i) {
      builder_.debug_output(x, "hidden_states." + std::to_string(i));
      x = layers_.build(i, prefix_ + "encoder.layer." + std::to_string(i) + ".", x,
                        [&](const LayerBuilder::Layer& layer) { return attend(layer); });
    }
    builder_.debug_output(x, "hidden_states." + std::to_string(config_.layers));
    x = layers_.norm("final_norm", x, prefix_ + "layernorm", width());
    builder_.debug_output(x, "last_hidden_state");
    write_metadata(checkpoint_, graph_,
                   {{"hidden_size", width()},
                    {"image_height", config_.grid.height},
                    {"image_width", config_.grid.width},
                    {"intermediate_size", config_.layer.inner},
                    {"num_attention_heads", config_.layer.heads.count},
                    {"num_channels", config_.grid.channels},
                    {"num_hidden_layers", config_.layers},
                    {"patches", config_.grid.patches()}});
    finish(x);
  }

 private:
  uint32_t width() const { return config_.layer.width; }

  uint32_t embed() {
    const ImageGrid& grid = config_.grid;
    const std::string of = prefix_ + "embeddings.patch_embeddings.projection";
    const uint32_t patches = begin_image(builder_, "pixel_values", grid);
    const uint32_t matrix = builder_.weight(
        of + ".weight", width(), grid.patch_size(),
        checkpoint_.tensor(of + ".weight",
                           {width(), grid.channels, grid.patch_height, grid.patch_width}));
    const uint32_t x =
        builder_.linear("projected", patches, matrix, parts_.vector(of + ".bias", width()));
    // Stands for patches that are hidden in training.
    checkpoint_.ignore_tensor(prefix_ + "embeddings.mask_token");
    return add_class_and_positions(checkpoint_, builder_, x, prefix_ + "embeddings.cls_token",
                                   prefix_ + "embeddings.position_embeddings", grid.patches() + 1,
                                   width());
  }

  uint32_t attend(const LayerBuilder::Layer& layer) {
    const uint32_t q = layers_.project(layer, LayerBuilder::kQueries, layer.name + ".query");
    const uint32_t k = layers_.project(layer, LayerBuilder::kKeys, layer.name + ".key");
    const uint32_t v = layers_.project(layer, LayerBuilder::kValues, layer.name + ".value");
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = config_.layer.heads.count;
    attention.scale = attention_scale(config_.layer.heads.width);
    attention.sources = {{k, v}};
    attention.pattern.kind = schema::PatternKind::Full;
    return builder_.attention(layer.name + ".attention", q, attention);
  }

  void finish(uint32_t x) {
    const std::string pooler = prefix_ + "pooler.dense";
    const schema::Activation function = read_activation(checkpoint_, "pooler_act", "tanh");
    const uint32_t pooled_width =
        checkpoint_.size("pooler_output_size", 1, kMaxSize, config_.layer.width);
    if (checkpoint_.has_tensor("classifier.weight")) {
      const uint32_t classes = stored_rows(checkpoint_, "classifier.weight");
      graph_.model.task = schema::Task::Classify;
      graph_.model.metadata->labels = checkpoint_.labels(classes);
      builder_.logits(builder_.first_row("class", x),
                      parts_.matrix("classifier.weight", classes, width()),
                      parts_.vector("classifier.bias", classes));
      // A classifier has no use for it.
      checkpoint_.ignore_tensor(pooler + ".weight");
      checkpoint_.ignore_tensor(pooler + ".bias");
      return;
    }
    checkpoint_.ignore_keys({"id2label", "label2id"});
    graph_.model.task = schema::Task::Encode;
    builder_.output("last_hidden_state", x);
    if (!checkpoint_.has_tensor(pooler + ".weight")) return;
    const uint32_t dense = parts_.linear("pooler.dense", builder_.first_row("pooler.token", x),
                                         pooler, width(), pooled_width);
    builder_.output("pooler_output", builder_.activate("pooled", dense, function));
  }

  const Checkpoint& checkpoint_;
  const Vit& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  LayerBuilder layers_;
  std::string prefix_;
};

}  // namespace

void import_vit(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Vit config = read(checkpoint, options);
  Model(checkpoint, config, graph).build();
}

}  // namespace oxbow::convert
