// Whisper (Radford et al. 2022) as in Hugging Face's library: two convolutions and an encoder over the frames of a
// log-mel spectrogram, a decoder that writes the text. Pre-norm layers, learned positions in the decoder.

#include "converter/blocks/encoder_decoder.h"
#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

// torch.nn.LayerNorm's own; the configuration has no key for it.
constexpr float kEpsilon = 1e-5f;
constexpr uint32_t kTaps = 3;
// Of the second convolution: two frames become one position.
constexpr uint32_t kStride = 2;

struct Stack {
  std::string name;
  uint32_t layers, heads, inner;
};

struct Config {
  uint32_t width, vocabulary, mel, positions;
  schema::Activation activation;
  Stack encoder, decoder;
  TextLengths lengths;
  bool tied;

  uint32_t frames() const { return kStride * positions; }
};

Stack read_stack(const Checkpoint& checkpoint, const std::string& name, uint32_t width) {
  Stack stack;
  stack.name = name;
  stack.layers = checkpoint.size(name + "_layers", 1, kMaxLayers);
  stack.heads = checkpoint.size(name + "_attention_heads", 1, width);
  stack.inner = checkpoint.size(name + "_ffn_dim", 1, kMaxSize);
  require_multiple(checkpoint, "d_model", width, name + "_attention_heads", stack.heads);
  return stack;
}

Config read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Config config;
  config.width = checkpoint.size("d_model", 1, kMaxSize);
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.mel = checkpoint.size("num_mel_bins", 1, 4096, 80);
  config.positions = checkpoint.size("max_source_positions", 1, kMaxSize / kStride, 1500);
  config.encoder = read_stack(checkpoint, "encoder", config.width);
  config.decoder = read_stack(checkpoint, "decoder", config.width);
  config.activation = read_activation(checkpoint, "activation_function", "gelu");
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  const uint32_t target = checkpoint.size("max_target_positions", 1, kMaxSize, 448);
  if (options.max_segment != 0) {
    throw UsageError("--max-segment is for texts; the length of a recording is the model's");
  }
  config.lengths = read_text_lengths(options, config.positions, target, "max_target_positions");
  ignore_common_keys(checkpoint);
  // Training, other heads, and how words are aligned with time. The original reads scale_embedding and then
  // multiplies nothing by it.
  checkpoint.ignore_keys({"is_encoder_decoder", "encoder_layerdrop", "decoder_layerdrop",
                          "num_hidden_layers", "scale_embedding", "use_weighted_layer_sum",
                          "classifier_proj_size", "apply_spec_augment", "mask_feature_length",
                          "mask_feature_min_masks", "mask_feature_prob", "mask_time_length",
                          "mask_time_min_masks", "mask_time_prob", "median_filter_width",
                          "forced_decoder_ids", "id2label", "label2id"});
  return config;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        builder_(graph),
        parts_(checkpoint, builder_),
        prefix_(optional_prefix(checkpoint, "model.", "encoder.conv1.weight")) {}

  void encode() {
    GraphBuilder::Entry entry;
    entry.name = "encode";
    entry.tokens = "input_features";
    entry.float_width = config_.frames();
    entry.max_segment = config_.mel;
    entry.starts = true;
    builder_.begin_entry(entry);
    const Stack& stack = config_.encoder;
    uint32_t x = builder_.add("encoder.input", convolutions(), encoder_positions());
    for (uint32_t i = 0; i < stack.layers; ++i) {
      builder_.debug_output(x, "encoder.hidden_states." + std::to_string(i));
      const Layer layer = layer_of(stack, i);
      const uint32_t normed = norm(layer, ".self.normed", x, "self_attn_layer_norm");
      x = add_output(layer, ".self", x,
                     attend_to_all(builder_, layer.name + ".self.attended",
                                   project(layer, ".self.q", normed, "self_attn.q_proj"),
                                   keys(layer, ".self", normed, "self_attn."), shape(stack),
                                   GraphBuilder::kNone),
                     "self_attn.out_proj");
      x = feed_forward(layer, x, stack.inner);
    }
    x = final_norm(stack, x);
    for (uint32_t i = 0; i < config_.decoder.layers; ++i) {
      const Layer layer = layer_of(config_.decoder, i);
      kept_.push_back(keep_for_decoder(builder_, layer.name + ".cross",
                                       keys(layer, ".cross", x, "encoder_attn."), config_.width,
                                       config_.positions));
    }
    builder_.output("encoder_last_hidden_state", x);
  }

  void decode() {
    GraphBuilder::Entry entry;
    entry.tokens = "decoder_input_ids";
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = config_.lengths.segment;
    entry.capacity = config_.lengths.target;
    entry.any_pieces = true;
    builder_.begin_entry(entry);
    const Stack& stack = config_.decoder;
    const std::string words = prefix_ + "decoder.embed_tokens.weight";
    const uint32_t table = parts_.matrix(words, config_.vocabulary, config_.width);
    uint32_t x =
        builder_.add("decoder.input", builder_.embedding("decoder.words", builder_.tokens(), table),
                     decoder_positions());
    for (uint32_t i = 0; i < stack.layers; ++i) {
      builder_.debug_output(x, "decoder.hidden_states." + std::to_string(i));
      const Layer layer = layer_of(stack, i);
      const uint32_t normed = norm(layer, ".self.normed", x, "self_attn_layer_norm");
      x = add_output(layer, ".self", x,
                     attend_to_past(builder_, layer.name + ".self",
                                    project(layer, ".self.q", normed, "self_attn.q_proj"),
                                    keys(layer, ".self", normed, "self_attn."), shape(stack),
                                    config_.lengths.target),
                     "self_attn.out_proj");
      const uint32_t asked = norm(layer, ".cross.normed", x, "encoder_attn_layer_norm");
      x = add_output(layer, ".cross", x,
                     attend_to_kept(builder_, layer.name + ".cross.attended",
                                    project(layer, ".cross.q", asked, "encoder_attn.q_proj"),
                                    kept_.at(i), shape(stack)),
                     "encoder_attn.out_proj");
      x = feed_forward(layer, x, stack.inner);
    }
    x = final_norm(stack, x);
    builder_.debug_output(x, "decoder.hidden_states." + std::to_string(stack.layers));
    if (config_.tied) checkpoint_.ignore_tensor("proj_out.weight");
    builder_.logits(
        builder_.take_rows("tail", x),
        parts_.matrix(config_.tied ? words : "proj_out.weight", config_.vocabulary, config_.width),
        GraphBuilder::kNone);
  }

 private:
  struct Layer {
    /// For tensors of the graph, and of its tensors in the checkpoint.
    std::string name, prefix;
  };
  Layer layer_of(const Stack& stack, uint32_t index) const {
    const std::string number = std::to_string(index);
    return {stack.name + ".layer" + number, prefix_ + stack.name + ".layers." + number + "."};
  }

  HeadShape shape(const Stack& stack) const {
    HeadShape shape;
    shape.heads = stack.heads;
    shape.width = config_.width;
    shape.scale = attention_scale(config_.width / stack.heads);
    return shape;
  }

  /// Both with zeros around: windows of three frames through a matrix each.
  uint32_t convolutions() {
    schema::PatchesOptionsT options;
    options.height = options.patch_height = options.stride_y = options.stride_x = 1;
    options.width = config_.frames();
    options.patch_width = kTaps;
    options.pad_x = kTaps / 2;
    options.channels = config_.mel;
    options.planar = true;
    const std::string one = prefix_ + "encoder.conv1", two = prefix_ + "encoder.conv2";
    const uint32_t width = config_.width;
    const uint32_t windows = builder_.patches("conv1.windows", builder_.tokens(), options);
    const uint32_t x = convolve("conv1", windows, one,
                                checkpoint_.tensor(one + ".weight", {width, config_.mel, kTaps}));
    options.channels = width;
    options.planar = false;
    options.stride_x = kStride;
    return convolve("conv2", builder_.patches("conv2.windows", x, options), two,
                    convolution_matrix(checkpoint_.tensor(two + ".weight", {width, width, kTaps}),
                                       width, width, kTaps));
  }

  uint32_t convolve(const std::string& name, uint32_t windows, const std::string& of,
                    std::vector<float> matrix) {
    const auto columns = static_cast<uint32_t>(matrix.size() / config_.width);
    const uint32_t y = builder_.linear(
        name, windows, builder_.weight(of + ".weight", config_.width, columns, std::move(matrix)),
        parts_.vector(of + ".bias", config_.width));
    // Whatever activation_function says.
    return builder_.activate(name + ".active", y, schema::Activation::Gelu);
  }

  uint32_t encoder_positions() {
    return parts_.matrix(prefix_ + "encoder.embed_positions.weight", config_.positions,
                         config_.width);
  }

  uint32_t decoder_positions() {
    const uint32_t rows = checkpoint_.size("max_target_positions", 1, kMaxSize, 448);
    const uint32_t table =
        parts_.matrix(prefix_ + "decoder.embed_positions.weight", rows, config_.width);
    return builder_.embedding("decoder.places", builder_.positions("decoder.positions", rows, {}),
                              table);
  }

  uint32_t norm(const Layer& layer, const std::string& name, uint32_t x, const std::string& of) {
    return parts_.layer_norm(layer.name + name, x, layer.prefix + of, config_.width, kEpsilon);
  }
  uint32_t final_norm(const Stack& stack, uint32_t x) {
    return parts_.layer_norm(stack.name + ".normed", x, prefix_ + stack.name + ".layer_norm",
                             config_.width, kEpsilon);
  }

  /// Keys have no bias.
  uint32_t project(const Layer& layer, const std::string& name, uint32_t x, const std::string& of,
                   bool bias = true) {
    return parts_.linear(layer.name + name, x, layer.prefix + of, config_.width, config_.width,
                         bias);
  }
  GraphBuilder::Source keys(const Layer& layer, const std::string& name, uint32_t x,
                            const std::string& of) {
    return {project(layer, name + ".k", x, of + "k_proj", false),
            project(layer, name + ".v", x, of + "v_proj")};
  }

  uint32_t add_output(const Layer& layer, const std::string& name, uint32_t x, uint32_t attended,
                      const std::string& of) {
    return builder_.add(layer.name + name + ".sum", x, project(layer, name + ".out", attended, of));
  }

  uint32_t feed_forward(const Layer& layer, uint32_t x, uint32_t inner) {
    const uint32_t width = config_.width;
    const uint32_t normed = norm(layer, ".ff.normed", x, "final_layer_norm");
    const uint32_t wide =
        parts_.linear(layer.name + ".wide", normed, layer.prefix + "fc1", width, inner);
    const uint32_t active = builder_.activate(layer.name + ".active", wide, config_.activation);
    const uint32_t narrow =
        parts_.linear(layer.name + ".narrow", active, layer.prefix + "fc2", inner, width);
    return builder_.add(layer.name + ".out", x, narrow);
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  GraphBuilder builder_;
  Parts parts_;
  std::string prefix_;
  /// Keys and values of the encoder's output, for each layer of the decoder.
  std::vector<GraphBuilder::Source> kept_;
};

void write_generation(const Checkpoint& checkpoint, const Config& config, Graph& graph) {
  graph.model.generation = read_generation(checkpoint, graph);
  for (const uint32_t token : checkpoint.sizes("suppress_tokens", 0, config.vocabulary - 1)) {
    graph.model.generation->forbidden_tokens.push_back(static_cast<int32_t>(token));
  }
  for (const uint32_t token : checkpoint.sizes("begin_suppress_tokens", 0, config.vocabulary - 1)) {
    graph.model.generation->first_forbidden_tokens.push_back(static_cast<int32_t>(token));
  }
}

}  // namespace

void import_whisper(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Config config = read(checkpoint, options);
  Model model(checkpoint, config, graph);
  model.encode();
  model.decode();
  graph.model.task = schema::Task::Translate;
  graph.keeps_context = true;
  write_generation(checkpoint, config, graph);
  write_metadata(checkpoint, graph,
                 {{"d_model", config.width},
                  {"decoder_ffn_dim", config.decoder.inner},
                  {"decoder_heads", config.decoder.heads},
                  {"decoder_layers", config.decoder.layers},
                  {"encoder_ffn_dim", config.encoder.inner},
                  {"encoder_heads", config.encoder.heads},
                  {"encoder_layers", config.encoder.layers},
                  {"frames", config.frames()},
                  {"max_target", config.lengths.target},
                  {"num_mel_bins", config.mel},
                  {"vocabulary", config.vocabulary}});
}

}  // namespace oxbow::convert
