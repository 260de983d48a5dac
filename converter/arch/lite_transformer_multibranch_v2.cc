// Lite Transformer (long-short range attention), transformer_multibranch_v2 of mit-han-lab: each
// layer gives a slice of its channels to attention and others to convolutions over time.

#include <algorithm>
#include <cmath>

#include "converter/blocks/encoder_decoder.h"
#include "converter/blocks/parts.h"
#include "host/args.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kMaxKernel = 4096;

/// A slice of a layer's channels and what happens to it.
struct Branch {
  enum class Kind { kAttention, kDynamic, kLightweight };
  Kind kind = Kind::kAttention;
  /// Taps of a convolution; 0: the layer's own.
  uint32_t kernel = 0;
  uint32_t width = 0, heads = 0;
};

/// Encoder or decoder.
struct Stack {
  std::string name;
  uint32_t vocabulary = 0, width = 0, inner = 0, layers = 0, heads = 0, length = 0;
  bool normalize_before = false, final_norm = false, learned_positions = false, glu = false;
  /// Empty: one attention over all channels, whose tensors have no number.
  std::vector<Branch> branches;
  std::vector<uint32_t> kernels;
  /// The tensor with the embeddings.
  std::string table;
};

struct Config {
  Stack encoder, decoder;
  std::string head;
  uint32_t padding = 0;
  float epsilon = 0;
  schema::Activation activation = schema::Activation::Relu;
  bool positions = true, weight_softmax = true, conv_linear = false;
  TextLengths lengths;
};

/// "type:kernel:width:heads", where the kernel may be the word default.
Branch parse_branch(const Checkpoint& checkpoint, const std::string& key, const std::string& text) {
  const auto fail = [&]() {
    checkpoint.refuse(key + " has " + printable(text) +
                      ", expected attn, dynamic or lightweight:KERNEL or default:WIDTH:HEADS, "
                      "heads dividing the width");
    return Branch{};
  };
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ':') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.size() != 4) return fail();
  // 0 for what is none.
  const auto number = [&](const std::string& word, uint32_t most) {
    const uint64_t value = parse_integer(word).value_or(0);
    return value > most ? 0 : static_cast<uint32_t>(value);
  };
  Branch branch;
  if (words[0] == "dynamic") {
    branch.kind = Branch::Kind::kDynamic;
  } else if (words[0] == "lightweight") {
    branch.kind = Branch::Kind::kLightweight;
  } else if (words[0] != "attn") {
    return fail();
  }
  if (words[1] != "default") branch.kernel = number(words[1], kMaxKernel);
  branch.width = number(words[2], kMaxSize);
  branch.heads = number(words[3], kMaxSize);
  const bool fits = (words[1] == "default" || branch.kernel != 0) && branch.heads != 0 &&
                    branch.width != 0 && branch.width % branch.heads == 0;
  return fits ? branch : fail();
}

std::vector<uint32_t> read_kernels(const Checkpoint& checkpoint, const std::string& key,
                                   uint32_t layers) {
  std::vector<uint32_t> kernels = {3, 7, 15, 31, 31, 31};
  if (checkpoint.has_key(key)) kernels = checkpoint.sizes(key, 1, kMaxKernel);
  if (kernels.size() == 1) kernels.assign(layers, kernels[0]);
  if (kernels.size() < layers) {
    checkpoint.refuse(key + " has " + std::to_string(kernels.size()) +
                      " sizes, expected one, or one for each of " + std::to_string(layers) +
                      " layers");
    kernels.resize(layers, 1);
  }
  return kernels;
}

Stack read_stack(const Checkpoint& checkpoint, const std::string& name) {
  Stack stack;
  stack.name = name;
  stack.width = checkpoint.size(name + "_embed_dim", 4, kMaxSize);
  stack.inner = checkpoint.size(name + "_ffn_embed_dim", 1, kMaxSize);
  stack.layers = checkpoint.size(name + "_layers", 1, kMaxLayers);
  stack.heads = checkpoint.size(name + "_attention_heads", 1, stack.width);
  stack.normalize_before = checkpoint.flag(name + "_normalize_before", false);
  stack.learned_positions = checkpoint.flag(name + "_learned_pos", false);
  stack.glu = checkpoint.flag(name + "_glu", true);
  stack.kernels = read_kernels(checkpoint, name + "_kernel_size_list", stack.layers);
  const std::string key = name + "_branch_type";
  uint64_t width = 0;
  for (const std::string& text : checkpoint.texts(key)) {
    stack.branches.push_back(parse_branch(checkpoint, key, text));
    width += stack.branches.back().width;
  }
  if (stack.branches.empty()) {
    require_multiple(checkpoint, name + "_embed_dim", stack.width, name + "_attention_heads",
                     stack.heads);
  } else if (width != stack.width) {
    checkpoint.refuse("the widths of " + key + " sum up to " + std::to_string(width) +
                      ", expected " + name + "_embed_dim, " + std::to_string(stack.width));
  }
  return stack;
}

void read_embeddings(const Checkpoint& checkpoint, Config& config) {
  config.encoder.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.decoder.vocabulary =
      checkpoint.size("tgt_vocab_size", 1, kMaxSize, config.encoder.vocabulary);
  config.encoder.table = "encoder.embed_tokens.weight";
  config.decoder.table = "decoder.embed_tokens.weight";
  const bool share_head = checkpoint.flag("share_decoder_input_output_embed", false);
  if (checkpoint.flag("share_all_embeddings", false)) {
    if (config.encoder.vocabulary != config.decoder.vocabulary ||
        config.encoder.width != config.decoder.width) {
      checkpoint.refuse(
          "share_all_embeddings is true, expected the same vocabulary and embed_dim "
          "of "
          "encoder and decoder, or false");
    }
    checkpoint.ignore_tensor(config.decoder.table);
    config.decoder.table = config.head = config.encoder.table;
  } else {
    config.head = share_head ? config.decoder.table : "decoder.embed_out";
  }
}

void refuse(const Checkpoint& checkpoint, const std::string& key) {
  if (!checkpoint.has_value(key)) return;
  checkpoint.refuse(key +
                    " is set, expected null: adaptive embeddings and softmax are not supported");
}

Config read_config(const Checkpoint& checkpoint, const ImportOptions& options) {
  Config config;
  config.encoder = read_stack(checkpoint, "encoder");
  config.decoder = read_stack(checkpoint, "decoder");
  read_embeddings(checkpoint, config);
  config.encoder.final_norm = config.encoder.normalize_before;
  config.decoder.final_norm =
      config.decoder.normalize_before && !checkpoint.flag("no_decoder_final_norm", false);
  config.padding = checkpoint.size("padding_idx", 0, config.encoder.vocabulary - 1, 1);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  config.activation = read_activation(checkpoint, "activation_fn", "relu");
  config.positions = !checkpoint.flag("no_token_positional_embeddings", false);
  config.weight_softmax = checkpoint.flag("weight_softmax", true);
  config.conv_linear = checkpoint.flag("conv_linear", false);
  config.encoder.length = checkpoint.size("max_source_positions", 1, kMaxSize, 1024);
  config.decoder.length = checkpoint.size("max_target_positions", 1, kMaxSize, 1024);
  const bool learned = config.encoder.learned_positions || config.decoder.learned_positions;
  config.lengths = read_text_lengths(options, config.encoder.length, config.decoder.length,
                                     config.positions && learned ? "the learned positions" : "");
  refuse(checkpoint, "adaptive_softmax_cutoff");
  if (checkpoint.flag("adaptive_input", false)) refuse(checkpoint, "adaptive_input");
  ignore_common_keys(checkpoint);
  checkpoint.ignore_keys(
      {"weight_dropout", "input_dropout", "relu_dropout", "adaptive_softmax_dropout",
       "tie_adaptive_weights", "ffn_init",
       // Arguments of the original that none of its layers reads: every layer has a feed-forward part.
       "encoder_ffn_list", "decoder_ffn_list", "encoder_decoder_branch_type", "decoder_input_dim"});
  return config;
}

/// Row 0 is the padding's, row p that of the p-th token. In float, as the original makes its table.
std::vector<float> sinusoid_table(uint32_t length, uint32_t width, uint32_t padding) {
  const uint32_t half = width / 2;
  const double step = std::log(10000.0) / (half - 1);
  std::vector<float> table(size_t{length + 1} * width);
  for (uint32_t row = 1; row <= length; ++row) {
    for (uint32_t i = 0; i < half; ++i) {
      const float frequency = std::exp(static_cast<float>(i) * static_cast<float>(-step));
      const float angle = static_cast<float>(row + padding) * frequency;
      table[size_t{row} * width + i] = std::sin(angle);
      table[size_t{row} * width + half + i] = std::cos(angle);
    }
  }
  return table;
}

/// Each row's softmax: the filters of a lightweight convolution do not change.
void softmax_rows(std::vector<float>& values, size_t width) {
  for (size_t first = 0; first < values.size(); first += width) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = row + static_cast<std::ptrdiff_t>(width);
    const double top = *std::max_element(row, end);
    double sum = 0;
    for (auto v = row; v != end; ++v) sum += std::exp(*v - top);
    for (auto v = row; v != end; ++v) *v = static_cast<float>(std::exp(*v - top) / sum);
  }
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {}

  void encode() {
    const Stack& stack = config_.encoder;
    GraphBuilder::Entry entry;
    entry.name = "encode";
    entry.tokens = "src_tokens";
    entry.vocabulary = stack.vocabulary;
    entry.max_segment = config_.lengths.source;
    entry.starts = true;
    builder_.begin_entry(entry);
    mask_ = builder_.token_mask("encoder.mask", config_.padding);
    uint32_t x = embed(stack, config_.lengths.source, static_cast<int32_t>(config_.padding));
    builder_.debug_output(x, "encoder.embed");
    for (uint32_t i = 0; i < stack.layers; ++i) {
      x = self_attention(stack, i, x);
      x = feed_forward(stack, i, x);
      builder_.debug_output(x, "encoder.layer" + std::to_string(i) + ".out");
    }
    if (stack.final_norm) x = norm(stack, "encoder.last", x, "encoder.layer_norm");
    keep(x);
    builder_.output("encoder_out", x);
  }

  void decode() {
    const Stack& stack = config_.decoder;
    GraphBuilder::Entry entry;
    entry.tokens = "prev_output_tokens";
    entry.vocabulary = stack.vocabulary;
    entry.max_segment = config_.lengths.segment;
    entry.capacity = config_.lengths.target;
    entry.any_pieces = true;
    builder_.begin_entry(entry);
    // Padding has no meaning here: while a text is written, every token counts.
    uint32_t x = embed(stack, config_.lengths.target, -1);
    builder_.debug_output(x, "decoder.state0");
    for (uint32_t i = 0; i < stack.layers; ++i) {
      x = self_attention(stack, i, x);
      x = cross_attention(i, x);
      x = feed_forward(stack, i, x);
      builder_.debug_output(x, "decoder.state" + std::to_string(i + 1));
    }
    uint32_t tail = builder_.take_rows("tail", x);
    if (stack.final_norm) tail = norm(stack, "tail.normed", tail, "decoder.layer_norm");
    builder_.logits(tail, parts_.matrix(config_.head, stack.vocabulary, stack.width),
                    GraphBuilder::kNone);
  }

 private:
  bool encodes(const Stack& stack) const { return &stack == &config_.encoder; }
  static std::string layer_name(const Stack& stack, uint32_t index) {
    return stack.name + ".layer" + std::to_string(index);
  }
  static std::string layer_prefix(const Stack& stack, uint32_t index) {
    return stack.name + ".layers." + std::to_string(index) + ".";
  }
  uint32_t norm(const Stack& stack, const std::string& name, uint32_t x,
                const std::string& prefix) {
    return parts_.layer_norm(name, x, prefix, stack.width, config_.epsilon);
  }

  uint32_t embed(const Stack& stack, uint32_t length, int32_t pad_token) {
    const uint32_t table = parts_.matrix(stack.table, stack.vocabulary, stack.width);
    const uint32_t x = builder_.embedding(stack.name + ".tokens", builder_.tokens(), table,
                                          std::sqrt(static_cast<float>(stack.width)));
    checkpoint_.ignore_tensor(stack.name + ".version");
    const std::string prefix = stack.name + ".embed_positions.";
    if (!config_.positions) return x;
    schema::PositionsOptionsT options;
    options.offset = 1;
    options.pad_token = pad_token;
    const uint32_t ids = builder_.positions(stack.name + ".positions", length + 1, options);
    std::vector<float> values;
    if (stack.learned_positions) {
      const uint64_t rows = uint64_t{stack.length} + config_.padding + 1;
      values = rows_of(checkpoint_.matrix(prefix + "weight", rows, stack.width), stack.width,
                       config_.padding, length + 1);
    } else {
      checkpoint_.ignore_tensor(prefix + "_float_tensor");
      checkpoint_.ignore_tensor(prefix + "weights");
      values = sinusoid_table(length, stack.width, config_.padding);
    }
    const uint32_t positions =
        builder_.weight(prefix + "weight", length + 1, stack.width, std::move(values));
    return builder_.add(stack.name + ".input", x,
                        builder_.embedding(stack.name + ".places", ids, positions));
  }

  /// x + part(norm(x)) or norm(x + part(x)).
  template <typename Part>
  uint32_t residual(const Stack& stack, const std::string& name, uint32_t x,
                    const std::string& norm_prefix, const Part& part) {
    const bool before = stack.normalize_before;
    const uint32_t z = before ? norm(stack, name + ".normed", x, norm_prefix) : x;
    const uint32_t sum = builder_.add(name + ".sum", x, part(z));
    return before ? sum : norm(stack, name + ".normed", sum, norm_prefix);
  }

  uint32_t self_attention(const Stack& stack, uint32_t index, uint32_t x) {
    const std::string name = layer_name(stack, index);
    const std::string prefix = layer_prefix(stack, index);
    const std::string attention = prefix + "self_attn.";
    return residual(stack, name + ".self", x, prefix + "self_attn_layer_norm", [&](uint32_t z) {
      if (stack.branches.empty()) {
        return attention_branch(stack, name + ".self", attention, z, stack.width, stack.heads);
      }
      std::vector<uint32_t> outputs;
      uint32_t first = 0;
      for (size_t i = 0; i < stack.branches.size(); ++i) {
        Branch branch = stack.branches[i];
        if (branch.kernel == 0) branch.kernel = stack.kernels[index];
        const std::string branch_name = name + ".branch" + std::to_string(i);
        const uint32_t slice = builder_.slice_columns(branch_name + ".in", z, first, branch.width);
        const std::string branch_prefix = attention + "branches." + std::to_string(i) + ".";
        outputs.push_back(
            branch.kind == Branch::Kind::kAttention
                ? attention_branch(stack, branch_name, branch_prefix, slice, branch.width,
                                   branch.heads)
                : convolution_branch(stack, branch_name, branch_prefix, slice, branch));
        builder_.debug_output(outputs.back(), branch_name + ".out");
        first += branch.width;
      }
      return outputs.size() == 1 ? outputs[0] : builder_.concat_columns(name + ".joined", outputs);
    });
  }

  HeadShape head_shape(uint32_t width, uint32_t heads) const {
    HeadShape shape;
    shape.heads = heads;
    shape.width = width;
    shape.scale = static_cast<float>(1.0 / std::sqrt(double(width / heads)));
    return shape;
  }

  uint32_t attention_branch(const Stack& stack, const std::string& name, const std::string& prefix,
                            uint32_t x, uint32_t width, uint32_t heads) {
    const HeadShape shape = head_shape(width, heads);
    const uint32_t q = parts_.linear(name + ".q", x, prefix + "q_proj", width, width);
    const GraphBuilder::Source keys = {
        parts_.linear(name + ".k", x, prefix + "k_proj", width, width),
        parts_.linear(name + ".v", x, prefix + "v_proj", width, width)};
    const uint32_t attended =
        encodes(stack)
            ? attend_to_all(builder_, name + ".attended", q, keys, shape, mask_)
            : attend_to_past(builder_, name + ".past", q, keys, shape, config_.lengths.target);
    return parts_.linear(name + ".out", attended, prefix + "out_proj", width, width);
  }

  uint32_t convolution_branch(const Stack& stack, const std::string& name,
                              const std::string& prefix, uint32_t x, const Branch& branch) {
    const uint32_t width = branch.width;
    // Padding is made zero before the projection, whose bias then stands in its place.
    if (encodes(stack)) x = builder_.mask_rows(name + ".masked", x, mask_);
    const bool dynamic = branch.kind == Branch::Kind::kDynamic;
    if (config_.conv_linear) {
      x = dynamic && stack.glu ? gated(name, prefix + "linear1", x, width)
                               : parts_.linear(name + ".wide", x, prefix + "linear1", width, width);
    }
    schema::ConvolutionOptionsT options;
    options.heads = branch.heads;
    options.taps = branch.kernel;
    options.left = encodes(stack) ? (branch.kernel - 1) / 2 : branch.kernel - 1;
    options.dynamic = dynamic;
    options.softmax = dynamic && config_.weight_softmax;
    const uint32_t kernel = dynamic ? parts_.linear(name + ".kernel", x, prefix + "weight_linear",
                                                    width, branch.heads * branch.kernel, false)
                                    : fixed_kernel(prefix + "weight", branch);
    uint32_t memory = GraphBuilder::kNone;
    if (!encodes(stack) && options.left > 0) {
      const uint32_t ring = builder_.ring(name + ".past", options.left);
      memory = builder_.ring_state(name + ".past", ring, width);
    }
    const uint32_t y = builder_.convolution(name + ".filtered", x, kernel, memory, options);
    if (memory != GraphBuilder::kNone) builder_.ring_push({x}, {memory});
    if (!config_.conv_linear) return y;
    return parts_.linear(name + ".out", y, prefix + "linear2", width, width);
  }

  /// A gated linear unit: the second half of the rows of one matrix gates the first.
  uint32_t gated(const std::string& name, const std::string& prefix, uint32_t x, uint32_t width) {
    const std::vector<float> weight = checkpoint_.matrix(prefix + ".weight", 2 * width, width);
    const std::vector<float> bias = checkpoint_.vector(prefix + ".bias", 2 * width);
    const auto half = [&](const std::string& part, size_t first) {
      return builder_.linear(
          name + part, x,
          builder_.weight(prefix + ".weight" + part, width, width,
                          rows_of(weight, width, first, width)),
          builder_.weight(prefix + ".bias" + part, 1, width, rows_of(bias, 1, first, width)));
    };
    const uint32_t wide = half(".wide", 0);
    const uint32_t gate =
        builder_.activate(name + ".open", half(".gate", width), schema::Activation::Sigmoid);
    return builder_.multiply(name + ".gated", wide, gate);
  }

  uint32_t fixed_kernel(const std::string& name, const Branch& branch) {
    std::vector<float> values = checkpoint_.tensor(name, {branch.heads, 1, branch.kernel});
    if (config_.weight_softmax) softmax_rows(values, branch.kernel);
    return builder_.weight(name, branch.heads, branch.kernel, std::move(values));
  }

  uint32_t cross_attention(uint32_t index, uint32_t x) {
    const Stack& stack = config_.decoder;
    const std::string name = layer_name(stack, index) + ".cross";
    const std::string prefix = layer_prefix(stack, index);
    return residual(stack, name, x, prefix + "encoder_attn_layer_norm", [&](uint32_t z) {
      const std::string attention = prefix + "encoder_attn.";
      const uint32_t q =
          parts_.linear(name + ".q", z, attention + "q_proj", stack.width, stack.width);
      const uint32_t attended = attend_to_kept(builder_, name + ".attended", q, kept_.at(index),
                                               head_shape(stack.width, stack.heads));
      return parts_.linear(name + ".out", attended, attention + "out_proj", stack.width,
                           stack.width);
    });
  }

  uint32_t feed_forward(const Stack& stack, uint32_t index, uint32_t x) {
    const std::string name = layer_name(stack, index) + ".ff";
    const std::string prefix = layer_prefix(stack, index);
    return residual(stack, name, x, prefix + "final_layer_norm", [&](uint32_t z) {
      const uint32_t wide =
          parts_.linear(name + ".wide", z, prefix + "fc1", stack.width, stack.inner);
      const uint32_t active = builder_.activate(name + ".active", wide, config_.activation);
      return parts_.linear(name + ".narrow", active, prefix + "fc2", stack.inner, stack.width);
    });
  }

  /// What the decoder will look at: rows that are no padding, through each layer's projections.
  void keep(uint32_t x) {
    const uint32_t in = config_.encoder.width, out = config_.decoder.width;
    const uint32_t symbol = builder_.symbol("source_rows", config_.lengths.source);
    const uint32_t rows = builder_.select_rows("encoder.rows", x, mask_, symbol);
    for (uint32_t i = 0; i < config_.decoder.layers; ++i) {
      const std::string name = layer_name(config_.decoder, i) + ".cross";
      const std::string prefix = layer_prefix(config_.decoder, i) + "encoder_attn.";
      const GraphBuilder::Source keys = {
          parts_.linear(name + ".k", rows, prefix + "k_proj", in, out),
          parts_.linear(name + ".v", rows, prefix + "v_proj", in, out)};
      kept_.push_back(keep_for_decoder(builder_, name, keys, out, config_.lengths.source));
    }
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  GraphBuilder builder_;
  Parts parts_;
  /// Of the encoder's tokens.
  uint32_t mask_ = 0;
  /// Keys and values of the encoder's output, for each layer of the decoder.
  std::vector<GraphBuilder::Source> kept_;
};

}  // namespace

void import_lite_transformer_multibranch_v2(const Checkpoint& checkpoint,
                                            const ImportOptions& options, Graph& graph) {
  const Config config = read_config(checkpoint, options);
  require_multiple(checkpoint, "decoder_embed_dim", config.decoder.width, "decoder_attention_heads",
                   config.decoder.heads);
  Model model(checkpoint, config, graph);
  model.encode();
  model.decode();
  graph.model.task = schema::Task::Translate;
  graph.keeps_context = true;
  auto generation = std::make_unique<schema::GenerationT>();
  // A text starts with the token that ends one.
  generation->end_token = generation->start_token = checkpoint.token("eos_token_id", -1);
  generation->pad_token = static_cast<int32_t>(config.padding);
  graph.model.generation = std::move(generation);
  write_metadata(checkpoint, graph,
                 {{"decoder_embed_dim", config.decoder.width},
                  {"decoder_ffn_dim", config.decoder.inner},
                  {"decoder_layers", config.decoder.layers},
                  {"encoder_embed_dim", config.encoder.width},
                  {"encoder_ffn_dim", config.encoder.inner},
                  {"encoder_layers", config.encoder.layers},
                  {"max_source", config.lengths.source},
                  {"max_target", config.lengths.target},
                  {"vocabulary", config.decoder.vocabulary}});
}

}  // namespace oxbow::convert
