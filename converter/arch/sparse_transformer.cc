// A Sparse Transformer (Child et al. 2019) as a whole decoder: norms before each half, and layers whose queries see the last
// tokens and every stride-th one before (strided), or their own block and the ends of the blocks before (fixed).

#include "converter/blocks/patterned_decoder.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

schema::PatternT strided(uint32_t stride) {
  schema::PatternT pattern;
  pattern.kind = schema::PatternKind::Strided;
  pattern.before = pattern.length = stride;
  return pattern;
}

schema::PatternT fixed(uint32_t stride, uint32_t summary, uint32_t sets) {
  schema::PatternT pattern;
  pattern.kind = schema::PatternKind::Fixed;
  pattern.length = stride;
  pattern.summary = summary;
  pattern.summary_sets = sets;
  return pattern;
}

}  // namespace

void import_sparse_transformer(const Checkpoint& checkpoint, const ImportOptions& options,
                               Graph& graph) {
  Decoder decoder =
      read_patterned_decoder(checkpoint, checkpoint.size("n_ctx", 1, kMaxSize), "n_ctx");
  decoder.layer.activation = read_activation(checkpoint, "activation_function", "gelu");
  decoder.layer.names.attention_norm = "attention_norm";
  decoder.layer.names.feed_forward_norm = "feed_forward_norm";
  const uint32_t stride = checkpoint.size("stride", 1, kMaxSize);
  const uint32_t summary = checkpoint.size("summary", 1, stride, 1);
  const uint32_t sets = checkpoint.size("summary_sets", 1, decoder.layer.heads.count, 1);
  if (uint64_t{summary} * sets > stride) {
    checkpoint.refuse("summary * summary_sets is " + std::to_string(uint64_t{summary} * sets) +
                      ", expected at most stride, " + std::to_string(stride));
  }
  for (const std::string& name :
       read_layer_patterns(checkpoint, decoder.shape.layers, {"all", "strided", "fixed"})) {
    decoder.shape.patterns.push_back(name == "strided" ? strided(stride)
                                     : name == "fixed" ? fixed(stride, summary, sets)
                                                       : schema::PatternT());
  }
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
