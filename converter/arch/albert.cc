// ALBERT (Lan et al. 2019) as in Hugging Face's library: BERT with narrow embeddings whose layers share
// their weights in groups.

#include "converter/blocks/encoder.h"

namespace oxbow::convert {

void import_albert(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  EncoderConfig config = read_bert_config(checkpoint, options, 0, "gelu_new");
  const uint32_t width = config.layer.width;
  config.base = "albert.";
  config.pooler = "pooler";
  config.embedding_width = checkpoint.size("embedding_size", 1, kMaxSize, 128);
  config.layer.names = {.attention_sum_norm = "attention.LayerNorm",
                        .feed_forward_sum_norm = "full_layer_layer_norm",
                        .q = "attention.query",
                        .k = "attention.key",
                        .v = "attention.value",
                        .attention_out = "attention.dense",
                        .up = "ffn",
                        .down = "ffn_output"};
  checkpoint.choice("position_embedding_type", "absolute", {"absolute"});
  const uint32_t groups = checkpoint.size("num_hidden_groups", 1, config.layers, 1);
  const uint32_t inner = checkpoint.size("inner_group_num", 1, kMaxLayers, 1);
  // Training, and what no version reads.
  checkpoint.ignore_keys({"classifier_dropout_prob", "down_scale_factor", "gap_size",
                          "net_structure_type", "num_memory_blocks", "layers_to_keep"});

  Encoder encoder(checkpoint, config, graph);
  GraphBuilder& builder = encoder.builder();
  const uint32_t positions = builder.positions("positions", config.positions, {});
  uint32_t x = encoder.parts().linear("embeddings.projected", encoder.embeddings(positions),
                                      encoder.prefix() + "encoder.embedding_hidden_mapping_in",
                                      config.embedding_width, width);
  for (uint32_t i = 0; i < config.layers; ++i) {
    builder.debug_output(x, "hidden_states." + std::to_string(i));
    const uint64_t group = uint64_t{i} * groups / config.layers;
    const std::string prefix =
        encoder.prefix() + "encoder.albert_layer_groups." + std::to_string(group);
    for (uint32_t j = 0; j < inner; ++j) {
      x = encoder.layer_builder().build(
          i * inner + j, prefix + ".albert_layers." + std::to_string(j) + ".", x,
          [&](const LayerBuilder::Layer& layer) { return encoder.attend(layer); });
    }
  }
  builder.debug_output(x, "hidden_states." + std::to_string(config.layers));
  encoder.finish(x,
                 {.dense = "predictions.dense",
                  .norm = "predictions.LayerNorm",
                  .decoder = "predictions.decoder",
                  .bias = "predictions.bias",
                  .activation = config.layer.activation},
                 schema::Activation::Tanh);
  encoder.leave_out_sentence_head("sop_classifier.classifier");
}

}  // namespace oxbow::convert
