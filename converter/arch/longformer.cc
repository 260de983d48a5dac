// Longformer (Beltagy et al. 2020) as in Hugging Face's library: BERT whose tokens see a window of
// neighbours, and global tokens, chosen by the caller, that see all others and are seen by all.
//
// The rows of global tokens go through projections of their own. Only those rows are computed twice:
// they are selected, attend to every key, and replace what the window gave.

#include "converter/blocks/roberta.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Neighbours on each side, of every layer.
std::vector<uint32_t> read_windows(const Checkpoint& checkpoint, uint32_t layers) {
  std::vector<uint32_t> windows = checkpoint.size_for_each("attention_window", 2, kMaxSize, layers);
  for (uint32_t& window : windows) {
    if (window % 2 != 0) {
      checkpoint.refuse("attention_window has " + std::to_string(window) +
                        ", expected even numbers: half of the window lies on each side");
    }
    window /= 2;
  }
  return windows;
}

/// Tokens from one that is seen to the next, for each layer: a key of its authors' configurations.
std::vector<uint32_t> read_dilations(const Checkpoint& checkpoint, uint32_t layers) {
  if (!checkpoint.has_value("attention_dilation")) return std::vector<uint32_t>(layers, 1);
  return checkpoint.size_for_each("attention_dilation", 1, kMaxSize, layers);
}

class Attention {
 public:
  Attention(const EncoderConfig& config, Encoder& encoder, std::vector<uint32_t> windows,
            std::vector<uint32_t> dilations)
      : encoder_(encoder),
        builder_(encoder.builder()),
        windows_(std::move(windows)),
        dilations_(std::move(dilations)),
        globals_(builder_.input("global_attention_mask", 2, 0)),
        global_rows_(builder_.symbol("global_tokens", config.max_segment)),
        width_(config.layer.width) {}

  uint32_t operator()(const LayerBuilder::Layer& layer) {
    const uint32_t rows = global(layer);
    const uint32_t merged =
        builder_.merge_rows(layer.name + ".attention.merged", local(layer), rows, globals_);
    // A global token that is padding is padding: its row is empty like that of any other.
    return builder_.mask_rows(layer.name + ".attention", merged, encoder_.attention_mask());
  }

 private:
  uint32_t local(const LayerBuilder::Layer& layer) {
    LayerBuilder& layers = encoder_.layer_builder();
    const uint32_t q = layers.project(layer, LayerBuilder::kQueries, layer.name + ".query");
    const uint32_t v = layers.project(layer, LayerBuilder::kValues, layer.name + ".value");
    const uint32_t k = layers.project(layer, LayerBuilder::kKeys, layer.name + ".key");
    GraphBuilder::Attention attention = encoder_.full_attention(k, v);
    attention.pattern.kind = schema::PatternKind::Window;
    attention.pattern.before = attention.pattern.after = windows_[layer.index];
    attention.pattern.dilation = {dilations_[layer.index]};
    attention.globals = globals_;
    attention.mask_queries = true;
    return builder_.attention(layer.name + ".attention.local", q, attention);
  }

  uint32_t project(const LayerBuilder::Layer& layer, const std::string& which, uint32_t x) {
    return encoder_.parts().linear(layer.name + "." + which, x,
                                   layer.prefix + "attention.self." + which, width_, width_);
  }

  uint32_t global(const LayerBuilder::Layer& layer) {
    const uint32_t rows =
        builder_.select_rows(layer.name + ".global", layer.x, globals_, global_rows_);
    const uint32_t q = project(layer, "query_global", rows);
    const uint32_t v = project(layer, "value_global", layer.x);
    const uint32_t k = project(layer, "key_global", layer.x);
    GraphBuilder::Attention attention = encoder_.full_attention(k, v);
    attention.own = false;
    return builder_.attention(layer.name + ".attention.global", q, attention);
  }

  Encoder& encoder_;
  GraphBuilder& builder_;
  std::vector<uint32_t> windows_, dilations_;
  uint32_t globals_;
  uint32_t global_rows_;
  uint32_t width_;
};

}  // namespace

void import_longformer(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const uint32_t pad_token = checkpoint.size("pad_token_id", 0, kMaxSize - 1, 1);
  EncoderConfig config = read_bert_config(checkpoint, options, pad_token + 1);
  config.base = "longformer.";
  require_flag(checkpoint, "ignore_attention_mask", false);
  checkpoint.choice("attention_mode", "longformer", {"longformer"});

  Encoder encoder(checkpoint, config, graph);
  const uint32_t embedded = encoder.embeddings(
      positions_behind_padding(encoder.builder(), pad_token, config.positions + pad_token + 1));
  Attention attention(config, encoder, read_windows(checkpoint, config.layers),
                      read_dilations(checkpoint, config.layers));
  const uint32_t x = encoder.layers(embedded, attention);
  encoder.finish(x, roberta_masked_head(), schema::Activation::Tanh);
  if (graph.model.task == schema::Task::Classify) {
    graph.warnings.push_back(
        "the first token of a text that is classified should be global: give global_attention_mask "
        "as 1, 0, 0, ...");
  }
}

}  // namespace oxbow::convert
