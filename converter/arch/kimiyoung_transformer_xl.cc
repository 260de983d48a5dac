// Transformer-XL as its authors wrote it (kimiyoung/transformer-xl, pytorch/mem_transformer.py).

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_xl.h"

namespace oxbow::convert {

void import_kimiyoung_transformer_xl(const Checkpoint& checkpoint, const ImportOptions& options,
                                     Graph& graph) {
  TransfoXl config;
  config.remembers_output = true;
  config.may_learn_positions = true;
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));

  AdaptiveWords& words = config.words;
  words.embedding_prefix = "word_emb.";
  words.head_prefix = "crit.";
  // Cluster i is read from the i-th column from the end.
  words.reversed_clusters = true;
  words.vocabulary = checkpoint.size("n_token", 1, kMaxSize);
  words.tied_words = checkpoint.flag("tie_weight", true);

  read_transfo_xl(checkpoint, options, &config);
  build_transfo_xl(checkpoint, config, graph);
  graph.model.metadata->time_major = true;
}

}  // namespace oxbow::convert
