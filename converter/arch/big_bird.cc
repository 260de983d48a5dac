// BigBird (Zaheer et al. 2020) as in Hugging Face's library since its version 4.29: BERT whose tokens see their own
// block, the blocks beside it, the first, the last, and a few listed ones. Texts are filled up to whole blocks; short
// ones are attended to in full.
//
// In evaluation the original lists block 0 wherever training draws a block at random, so that its keys count several
// times. That is what happens without the inputs layerN.rand_attn, which list other blocks.

#include <cmath>

#include "converter/blocks/encoder.h"
#include "host/errors.h"
#include "runtime/op.h"

namespace oxbow::convert {
namespace {

struct Blocks {
  uint32_t size = 0;
  uint32_t listed = 0;

  /// Texts of no more tokens are attended to in full.
  uint32_t full_up_to() const { return (5 + 2 * listed) * size; }
};

class Attention {
 public:
  Attention(const EncoderConfig& config, const Blocks& blocks, Encoder& encoder)
      : encoder_(encoder), blocks_(blocks) {
    const uint32_t rows = encoder.most_rows() / blocks.size;
    // The main input, the mask and the types come before.
    if (blocks.listed == 0 || rows <= 2 || config.layers + 3 > kMaxInputs) return;
    GraphBuilder& builder = encoder.builder();
    const uint32_t symbol =
        builder.symbol("listed_blocks", config.layer.heads.count * (rows - 2) * blocks.listed);
    for (uint32_t i = 0; i < config.layers; ++i) {
      const std::string name = "layer" + std::to_string(i) + ".rand_attn";
      lists_.push_back(builder.input(name, rows, 0, symbol));
      names_.push_back(name);
    }
  }

  const std::vector<std::string>& inputs() const { return names_; }

  uint32_t operator()(const LayerBuilder::Layer& layer) {
    return encoder_.attend(layer, [&](GraphBuilder::Attention& attention) {
      attention.pattern.kind = schema::PatternKind::ListedBlocks;
      attention.pattern.length = blocks_.size;
      attention.pattern.listed = blocks_.listed;
      attention.pattern.full_up_to = blocks_.full_up_to();
      attention.mask_queries = true;
      if (!lists_.empty()) attention.blocks = lists_[layer.index];
    });
  }

 private:
  Encoder& encoder_;
  const Blocks& blocks_;
  std::vector<uint32_t> lists_;
  std::vector<std::string> names_;
};

void refuse_heads(const Checkpoint& checkpoint) {
  if (checkpoint.has_tensor("qa_classifier.qa_outputs.weight")) {
    throw InputError(
        "tensor qa_classifier.qa_outputs.weight: BigBird's question answering is not supported");
  }
  if (checkpoint.has_tensor("classifier.weight")) {
    throw InputError(
        "tensor classifier.weight: BigBird's classifiers of tokens and of choices are not "
        "supported, "
        "expected classifier.out_proj.weight");
  }
}

}  // namespace

void import_big_bird(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  EncoderConfig config = read_bert_config(checkpoint, options);
  config.base = "bert.";
  config.pooler = "pooler";
  checkpoint.choice("position_embedding_type", "absolute", {"absolute"});
  if (!checkpoint.flag("use_bias", true)) config.layer.qkv_bias = Bias::kNone;
  if (checkpoint.flag("rescale_embeddings", false)) {
    config.word_scale = static_cast<float>(std::sqrt(static_cast<double>(config.layer.width)));
  }
  Blocks blocks;
  blocks.size = checkpoint.size("block_size", 1, kMaxSize / 16, 64);
  blocks.listed = checkpoint.size("num_random_blocks", 0, 1024, 3);
  const bool sparse = checkpoint.choice("attention_type", "block_sparse",
                                        {"block_sparse", "original_full"}) == "block_sparse";
  if (sparse) {
    config.padding = {blocks.size, blocks.full_up_to(),
                      checkpoint.size("pad_token_id", 0, config.vocabulary - 1, 0)};
  }
  refuse_heads(checkpoint);

  Encoder encoder(checkpoint, config, graph);
  const uint32_t embedded = encoder.embeddings(
      encoder.builder().positions("positions", config.positions, {}, encoder.tokens()));
  std::vector<std::string> lists;
  uint32_t x = 0;
  if (sparse) {
    Attention attention(config, blocks, encoder);
    lists = attention.inputs();
    x = encoder.layers(embedded, attention);
  } else {
    x = encoder.layers(embedded, [&](const auto& layer) { return encoder.attend(layer); });
  }
  MaskedHead head;
  head.activation = config.layer.activation;
  encoder.finish(x, head, config.layer.activation);
  graph.model.metadata->shared_inputs = lists;
  encoder.leave_out_sentence_head();
}

}  // namespace oxbow::convert
