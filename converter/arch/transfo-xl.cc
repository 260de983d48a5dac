// Transformer-XL as in Hugging Face's transformers (models/transfo_xl, TransfoXLLMHeadModel). Unlike
// its authors' version a stream begins with memories full of zeros, which are seen.

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_xl.h"
#include "ops/adaptive_softmax/adaptive_softmax.h"

namespace oxbow::convert {

void import_transfo_xl(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  TransfoXl config;
  config.starts_with_zeros = true;
  config.prefix = "transformer.";
  config.untied_biases = checkpoint.flag("untie_r", true);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.clamp = 1000;
  config.same_length = true;

  AdaptiveWords& words = config.words;
  words.embedding_prefix = "transformer.word_emb.";
  words.head_prefix = "crit.";
  words.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  words.cutoffs = {20000, 40000, 200000};
  words.division = 4;
  words.tied_words = checkpoint.flag("tie_word_embeddings", true);
  // One flag for the projections of all clusters but the first, or a list.
  const bool shared = checkpoint.flag("proj_share_all_but_first", true);
  words.tied_projections.assign(kMaxClusters + 1, shared);
  words.tied_projections[0] = false;

  read_transfo_xl(checkpoint, options, &config);
  build_transfo_xl(checkpoint, config, graph);

  constexpr uint32_t kNone = UINT32_MAX;
  const uint32_t end = checkpoint.size("eos_token_id", 0, words.vocabulary - 1, kNone);
  graph.model.generation = std::make_unique<schema::GenerationT>();
  if (end != kNone) graph.model.generation->end_token = static_cast<int32_t>(end);
}

}  // namespace oxbow::convert
