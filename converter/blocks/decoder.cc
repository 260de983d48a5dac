#include "converter/blocks/decoder.h"

namespace oxbow::convert {
namespace {

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Decoder& decoder,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(decoder),
        decoder_(checkpoint, options, decoder.shape, decoder.layer.heads, graph),
        layers_(checkpoint, decoder.layer, decoder_.builder(), decoder_.parts()) {}

  void build() {
    const DecoderNames& names = config_.names;
    const uint32_t words =
        matrix(names.prefix + names.words, config_.shape.vocabulary, embedding_width());
    uint32_t x = embed(words);
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      const std::string prefix = names.prefix + names.layers + std::to_string(i) + ".";
      x = layers_.build(i, prefix, x,
                        [this](const LayerBuilder::Layer& layer) { return attend(layer); });
    }
    head(decoder_.builder().take_rows("tail", x), words);
    std::vector<std::pair<std::string, uint32_t>> sizes = {{"d_model", config_.layer.width}};
    if (!config_.fixed_inner) sizes.emplace_back("d_ff", config_.layer.inner);
    decoder_.describe(sizes);
  }

 private:
  uint32_t embedding_width() const {
    return config_.embedding_width == 0 ? config_.layer.width : config_.embedding_width;
  }
  uint32_t matrix(const std::string& name, uint32_t rows, uint32_t width) {
    return decoder_.parts().matrix(name + ".weight", rows, width);
  }
  uint32_t project_if(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                      uint32_t out) {
    if (of.empty()) return x;
    return layers_.linear(name, x, config_.names.prefix + of, in, out, Bias::kNone);
  }
  uint32_t norm_if(const std::string& name, uint32_t x, const std::string& of) {
    return layers_.norm_if(name, x, config_.names.prefix, of);
  }

  uint32_t embed(uint32_t words) {
    GraphBuilder& builder = decoder_.builder();
    const DecoderNames& names = config_.names;
    const bool is_all = names.places.empty() && names.embedding_norm.empty();
    const auto embedding = [&] {
      const uint32_t rows = builder.embedding(is_all ? "embedded" : "words", builder.tokens(),
                                              words, config_.embedding_scale);
      return project_if("words.projected", rows, names.projection_in, embedding_width(),
                        config_.layer.width);
    };
    if (!config_.shape.position_table) {
      return norm_if("embedded", embedding(), names.embedding_norm);
    }
    const CausalShape& shape = config_.shape;
    const uint32_t table = matrix(names.prefix + names.places,
                                  shape.unused_positions + shape.length, config_.layer.width);
    const uint32_t places = builder.embedding("places", decoder_.positions(), table);
    return builder.add("embedded", embedding(), places);
  }

  uint32_t attend(const LayerBuilder::Layer& layer) {
    const uint32_t q = layers_.project(layer, LayerBuilder::kQueries, layer.name + ".q");
    const uint32_t k = layers_.project(layer, LayerBuilder::kKeys, layer.name + ".k");
    const uint32_t v = layers_.project(layer, LayerBuilder::kValues, layer.name + ".v");
    float scale = config_.scale.value_or(attention_scale(config_.layer.heads.width));
    if (config_.scale_by_layer) scale /= static_cast<float>(layer.index + 1);
    return decoder_.attend(layer.index, q, k, v, scale);
  }

  void head(uint32_t x, uint32_t words) {
    const uint32_t normed = norm_if("final_norm", x, config_.names.final_norm);
    const uint32_t last = project_if("final_norm.projected", normed, config_.names.projection_out,
                                     config_.layer.width, embedding_width());
    const std::string& name = config_.names.head;
    const uint32_t vocabulary = config_.shape.vocabulary;
    if (config_.tied) checkpoint_.ignore_tensor(name + ".weight");
    const uint32_t bias = config_.head_bias ? decoder_.parts().vector(name + ".bias", vocabulary)
                                            : GraphBuilder::kNone;
    decoder_.logits(last, config_.tied ? words : matrix(name, vocabulary, embedding_width()), bias,
                    config_.logit_cap);
  }

  const Checkpoint& checkpoint_;
  const Decoder& config_;
  CausalDecoder decoder_;
  LayerBuilder layers_;
};

}  // namespace

void build_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                   const Decoder& decoder, Graph& graph) {
  Builder(checkpoint, options, decoder, graph).build();
}

}  // namespace oxbow::convert
