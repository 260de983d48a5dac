// An Image Transformer (Parmar et al. 2018) as a whole decoder that writes pixels row by row: norms behind each half, and
// layers whose queries see their block of the row of pixels and some before it (1d), or a block of the picture and some rows above
// and columns beside it (2d). A pixel is a token for each of its channels, side by side.

#include "converter/blocks/patterned_decoder.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

schema::PatternT block_1d(const Checkpoint& checkpoint) {
  schema::PatternT pattern;
  pattern.kind = schema::PatternKind::Block1D;
  pattern.length = checkpoint.size("query_block", 1, kMaxSize);
  pattern.before = checkpoint.size("memory", 0, kMaxSize, 0);
  return pattern;
}

schema::PatternT block_2d(const Checkpoint& checkpoint, uint32_t columns) {
  schema::PatternT pattern;
  pattern.kind = schema::PatternKind::Block2D;
  pattern.image_width = columns;
  pattern.length = checkpoint.size("block_height", 1, kMaxSize);
  pattern.block_width = checkpoint.size("block_width", 1, columns);
  pattern.before = checkpoint.size("memory_rows", 0, kMaxSize, 0);
  pattern.after = checkpoint.size("memory_columns", 0, columns, 0);
  return pattern;
}

}  // namespace

void import_image_transformer(const Checkpoint& checkpoint, const ImportOptions& options,
                              Graph& graph) {
  const uint32_t height = checkpoint.size("image_height", 1, 1u << 15);
  const uint32_t columns =
      checkpoint.size("image_width", 1, 1u << 12) * checkpoint.size("channels", 1, 8, 3);
  const uint64_t length = uint64_t{height} * columns;
  if (length > kMaxSize) {
    checkpoint.refuse("a picture has " + std::to_string(length) + " tokens, expected at most " +
                      std::to_string(kMaxSize));
  }
  Decoder decoder = read_patterned_decoder(
      checkpoint, static_cast<uint32_t>(std::min<uint64_t>(length, kMaxSize)),
      "image_height * image_width * channels");
  decoder.layer.activation = read_activation(checkpoint, "activation_function", "relu");
  decoder.layer.names.attention_sum_norm = "attention_norm";
  decoder.layer.names.feed_forward_sum_norm = "feed_forward_norm";
  decoder.names.final_norm.clear();
  for (const std::string& name :
       read_layer_patterns(checkpoint, decoder.shape.layers, {"1d", "2d"})) {
    decoder.shape.patterns.push_back(name == "1d" ? block_1d(checkpoint)
                                                  : block_2d(checkpoint, columns));
  }
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
