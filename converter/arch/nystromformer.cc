// Nystromformer (Xiong et al. 2021) as in Hugging Face's library: an encoder whose attention goes by way of landmarks,
// the means of groups of tokens, and adds a convolution of the values. With as many landmarks as
// segment_means_seq_len, as in the published checkpoint, its attention is a plain one.

#include "converter/blocks/encoder.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

// Positions are counted from 2 on, and the table has two rows more.
constexpr uint32_t kFirstPosition = 2;
constexpr uint32_t kIterations = 6;

struct Nystrom {
  EncoderConfig encoder;
  /// 0: attention is plain.
  uint32_t landmarks = 0;
  /// Tokens of a landmark.
  uint32_t group = 0;
  /// Of the convolution; 0: there is none.
  uint32_t taps = 0;
};

/// Landmarks are means of a fixed number of tokens: such a model takes texts of one length.
void read_landmarks(const Checkpoint& checkpoint, const ImportOptions& options, Nystrom& config) {
  const uint32_t landmarks = checkpoint.size("num_landmarks", 1, kMaxSize, 64);
  const uint32_t length = checkpoint.size("segment_means_seq_len", 1, kMaxSize, 64);
  if (landmarks == length) return;
  config.landmarks = landmarks;
  config.group = length / landmarks;
  const uint32_t tokens = config.group * landmarks;
  if (config.group == 0 || tokens > config.encoder.positions) {
    checkpoint.refuse("num_landmarks is " + std::to_string(landmarks) +
                      " and segment_means_seq_len " + std::to_string(length) +
                      ", expected no more landmarks than that and no more tokens than " +
                      std::to_string(config.encoder.positions) + " positions");
    return;
  }
  if (options.max_segment != 0 && options.max_segment != tokens) {
    throw UsageError("--max-segment is " + std::to_string(options.max_segment) + ", expected " +
                     std::to_string(tokens) + ": the model's landmarks need texts of that length");
  }
  config.encoder.max_segment = tokens;
}

Nystrom read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Nystrom config;
  config.encoder = read_bert_config(checkpoint, options);
  config.encoder.base = "nystromformer.";
  config.encoder.unused_positions = kFirstPosition;
  read_landmarks(checkpoint, options, config);
  if (!checkpoint.has_key("conv_kernel_size") || checkpoint.has_value("conv_kernel_size")) {
    config.taps = checkpoint.size("conv_kernel_size", 1, kMaxSize, 65);
  }
  if (config.taps != 0 && config.taps % 2 == 0) {
    checkpoint.refuse("conv_kernel_size is " + std::to_string(config.taps) +
                      ", expected an odd number");
  }
  // The original fails with it.
  require_flag(checkpoint, "inv_coeff_init_option", false);
  return config;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Nystrom& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), encoder_(checkpoint, config.encoder, graph) {}

  void build() {
    if (config_.landmarks != 0) {
      sums_ = builder().float_input("column_sums", config_.encoder.layers,
                                    builder().symbol("batches", 1), false);
    }
    schema::PositionsOptionsT options;
    options.offset = kFirstPosition;
    const uint32_t positions =
        builder().positions("positions", config_.encoder.positions + kFirstPosition, options);
    const uint32_t x =
        encoder_.layers(encoder_.embeddings(positions),
                        [&](const LayerBuilder::Layer& layer) { return attend(layer); });
    MaskedHead head;
    head.activation = config_.encoder.layer.activation;
    encoder_.finish(x, head, config_.encoder.layer.activation);
    if (config_.landmarks != 0) builder().output("column_sums", divisors_);
  }

 private:
  GraphBuilder& builder() { return encoder_.builder(); }

  uint32_t attend(const LayerBuilder::Layer& layer) {
    LayerBuilder& layers = encoder_.layer_builder();
    const uint32_t q = layers.project(layer, LayerBuilder::kQueries, layer.name + ".query");
    const uint32_t k = layers.project(layer, LayerBuilder::kKeys, layer.name + ".key");
    const uint32_t v = layers.project(layer, LayerBuilder::kValues, layer.name + ".value");
    const uint32_t attended =
        config_.landmarks == 0
            ? builder().attention(layer.name + ".attention", q, encoder_.full_attention(k, v))
            : by_landmarks(layer, q, k, v);
    if (config_.taps == 0) return attended;
    const uint32_t heads = config_.encoder.layer.heads.count;
    const std::string name = layer.prefix + "attention.self.conv.weight";
    const uint32_t kernel = builder().weight(name, heads, config_.taps,
                                             checkpoint_.tensor(name, {heads, 1, config_.taps, 1}));
    schema::ConvolutionOptionsT options;
    options.heads = heads;
    options.taps = config_.taps;
    options.left = config_.taps / 2;
    return builder().add(
        layer.name + ".attended", attended,
        builder().convolution(layer.name + ".convolved", v, kernel, GraphBuilder::kNone, options));
  }

  /// softmax(q Lk^T) inverse(softmax(Lq Lk^T)) softmax(Lq k^T) v, from the right to the left.
  uint32_t by_landmarks(const LayerBuilder::Layer& layer, uint32_t q, uint32_t k, uint32_t v) {
    const auto landmarks = [&](const char* which, uint32_t x) {
      return builder().mean_rows(layer.name + which, x, config_.landmarks, config_.group);
    };
    const uint32_t landmark_q = landmarks(".query_landmarks", q);
    const uint32_t landmark_k = landmarks(".key_landmarks", k);
    GraphBuilder::Attention gather = encoder_.full_attention(k, v);
    gather.own = false;
    const uint32_t gathered = builder().attention(layer.name + ".gathered", landmark_q, gather);
    schema::LandmarkInverseOptionsT options;
    options.heads = config_.encoder.layer.heads.count;
    options.scale = attention_scale(encoder_.head_width());
    options.iterations = kIterations;
    options.column = layer.index;
    uint32_t divisor = GraphBuilder::kNone;
    const uint32_t inverted = builder().landmark_inverse(
        layer.name + ".inverted", landmark_q, landmark_k, gathered, sums_, options, &divisor);
    divisors_ = layer.index == 0
                    ? divisor
                    : builder().concat_columns(layer.name + ".divisors", {divisors_, divisor});
    GraphBuilder::Attention spread = encoder_.full_attention(landmark_k, inverted);
    spread.own = false;
    spread.key_mask = GraphBuilder::kNone;
    return builder().attention(layer.name + ".attention", q, spread);
  }

  const Checkpoint& checkpoint_;
  const Nystrom& config_;
  Encoder encoder_;
  /// What the largest sums of the columns were, and what they are in the batch that a text belongs to.
  uint32_t divisors_ = GraphBuilder::kNone;
  uint32_t sums_ = GraphBuilder::kNone;
};

}  // namespace

void import_nystromformer(const Checkpoint& checkpoint, const ImportOptions& options,
                          Graph& graph) {
  const Nystrom config = read(checkpoint, options);
  Model(checkpoint, config, graph).build();
}

}  // namespace oxbow::convert
