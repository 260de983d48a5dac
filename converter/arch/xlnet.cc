// XLNet (Yang et al. 2019) as in Hugging Face's library: post-norm layers whose tokens see their whole
// run, on both sides, and the inputs that this layer had for earlier tokens. Distances, signed, are
// scored as in Transformer-XL, and so is whether two tokens belong to the same segment.
//
//   scale * ((q + r_w_bias) . k + (q + r_r_bias) . W_r s(d) + (q + r_s_bias) . seg_embed[same?])
//
// with s(d) the sines and cosines of distance d. W_r s(d) is a table, made here.
//
// A token's own state knows the token, so it cannot predict it. What comes next is predicted by the second,
// the query stream: one row behind the run, mask_emb at first, which sees all tokens as they see each other.
// Entry point `step` gives that row's logits; `content` those of every token.

#include <algorithm>
#include <cmath>

#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

// Later tokens of the same run are seen, so runs are not cut as short as those of other models.
constexpr uint32_t kSegment = 512;
/// Tokens remembered by a model that is to remember all.
constexpr uint32_t kContext = 1024;

struct Config {
  uint32_t vocabulary = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t inner_width = 0;
  uint32_t layers = 0;
  float epsilon = 1e-12f;
  schema::Activation activation = schema::Activation::Gelu;
  uint32_t max_segment = 0;
  /// 0: there is none.
  uint32_t memory_rows = 0;
  /// Tokens of a stream; 0: endless.
  uint32_t capacity = 0;
  /// Unless 0: only so many of a run's first rows are remembered.
  uint32_t reuse_rows = 0;
  /// Unless 0: larger distances count as this one.
  uint32_t farthest = 0;
  bool tied = true;
};

/// A memory without a length keeps everything, which is `context` tokens here: the stream ends then, or
/// the oldest leave.
void read_memory(const Checkpoint& checkpoint, const ImportOptions& options, Config& config,
                 Graph& graph) {
  const uint32_t rows = checkpoint.size("mem_len", 0, kMaxSize, 0);
  config.reuse_rows = checkpoint.size("reuse_len", 0, kMaxSize, 0);
  if (!checkpoint.flag("use_mems_eval", true)) return;
  config.memory_rows = rows;
  if (rows != 0) return;
  if (options.sinks != 0) {
    throw InputError("--sinks is " + std::to_string(options.sinks) +
                     ", expected 0: no rows of XLNet's memory stay for ever");
  }
  graph.keeps_context = true;
  config.memory_rows = options.context == 0 ? kContext : options.context;
  if (options.ring) return;
  config.capacity = config.memory_rows;
  config.max_segment = std::min(config.max_segment, config.capacity);
}

Config read_config(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Config config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("d_model", 2, kMaxSize);
  require_multiple(checkpoint, "d_model", config.width, "two", 2);
  config.heads = checkpoint.size("n_head", 1, config.width);
  require_multiple(checkpoint, "d_model", config.width, "n_head", config.heads);
  const uint32_t head_width = config.width / config.heads;
  checkpoint.size("d_head", head_width, head_width, head_width);
  config.inner_width = checkpoint.size("d_inner", 1, kMaxSize);
  config.layers = checkpoint.size("n_layer", 1, kMaxLayers);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-12));
  config.activation = read_activation(checkpoint, "ff_activation", "gelu");
  checkpoint.choice("attn_type", "bi", {"bi"});
  require_flag(checkpoint, "bi_data", false);
  const double clamp = checkpoint.number("clamp_len", -double{kMaxSize}, kMaxSize, -1);
  config.farthest = clamp > 0 ? static_cast<uint32_t>(clamp) : 0;
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  config.max_segment = read_segment(checkpoint, options);
  if (options.max_segment == 0) config.max_segment = std::max(config.max_segment, kSegment);
  read_memory(checkpoint, options, config, graph);
  checkpoint.ignore_keys({
      // Of one direction only.
      "same_length",
      // Every layer has biases of its own in the file, equal or not.
      "untie_r",
      // Of training.
      "use_mems_train",
      "summary_last_dropout",
      // Of heads whose tensors would be refused.
      "end_n_top",
      "start_n_top",
      "summary_activation",
      "summary_type",
      "summary_use_proj",
  });
  ignore_common_keys(checkpoint);
  return config;
}

/// Rows times a matrix [in, out].
std::vector<float> product(const std::vector<float>& rows, const std::vector<float>& matrix,
                           size_t in, size_t out) {
  std::vector<float> result;
  result.reserve(rows.size() / in * out);
  std::vector<double> sums(out);
  for (size_t first = 0; first < rows.size(); first += in) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (size_t i = 0; i < in; ++i) {
      const double factor = rows[first + i];
      for (size_t o = 0; o < out; ++o) sums[o] += factor * matrix[i * out + o];
    }
    for (const double sum : sums) result.push_back(static_cast<float>(sum));
  }
  return result;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_),
        prefix_(optional_prefix(checkpoint, "transformer.", "word_embedding.weight")),
        has_head_(checkpoint.has_tensor("lm_loss.bias")) {}

  void build() {
    // Without a memory there is no stream that a next word could follow.
    const bool predicts = has_head_ && config_.memory_rows != 0;
    begin(predicts ? "content" : config_.memory_rows == 0 ? "encode" : "step");
    read_weights();
    uint32_t x = embed();
    for (size_t i = 0; i < layers_.size(); ++i) x = layer(i, x);
    if (!has_head_) {
      graph_.model.task = schema::Task::Encode;
      builder_.output("last_hidden_state", x);
    } else {
      graph_.model.task = predicts ? schema::Task::Generate : schema::Task::FillMask;
      builder_.debug_output(x, "last_hidden_state");
      builder_.logits(builder_.take_rows("tail", x), head_, head_bias_);
    }
    if (predicts) build_prediction();
  }

 private:
  struct Norm {
    uint32_t weight, bias;
  };
  /// The weights of one layer and its memory, which both entry points share.
  struct Layer {
    uint32_t q, k, v, o;
    GraphBuilder::Relative relative;
    uint32_t types_table, types_bias;
    Norm attention_norm, inner_norm;
    uint32_t wide, wide_bias, narrow, narrow_bias;
    /// The layer's inputs and their keys and values; none without a memory.
    std::vector<uint32_t> memory;
  };

  void begin(const std::string& name) {
    GraphBuilder::Entry entry;
    entry.name = name;
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = config_.max_segment;
    entry.capacity = config_.capacity;
    entry.starts = config_.memory_rows == 0;
    builder_.begin_entry(entry);
    mask_ = builder_.input("attention_mask", 2, 1);
    // Only whether they are equal matters: when all are, a query's scores change by the same amount.
    types_ = builder_.input("token_type_ids", kMaxSize, 0);
  }

  /// The query stream: a row that knows its place but no token, behind the run's last. It sees what the
  /// run's tokens see, and its last state tells the next token.
  void build_prediction() {
    begin("step");
    uint32_t x = embed();
    const std::string name = prefix_ + "mask_emb";
    const uint32_t start =
        builder_.weight(name, 1, config_.width, checkpoint_.tensor(name, {1, 1, config_.width}));
    uint32_t query = builder_.concat_rows("query", {start});
    for (size_t i = 0; i < layers_.size(); ++i) x = layer(i, x, &query);
    builder_.logits(query, head_, head_bias_);
  }

  uint32_t embed() {
    const uint32_t x = builder_.embedding("hidden_states.0", builder_.tokens(), words_);
    builder_.debug_output(x);
    return x;
  }

  void read_weights() {
    words_ = parts_.matrix(prefix_ + "word_embedding.weight", config_.vocabulary, config_.width);
    sinusoids_ = distances();
    for (uint32_t i = 0; i < config_.layers; ++i) layers_.push_back(read_layer(i));
    // Stands for a token that is to be predicted.
    if (!has_head_ || config_.memory_rows == 0) checkpoint_.ignore_tensor(prefix_ + "mask_emb");
    if (!has_head_) return;
    // The other name of the same numbers.
    if (config_.tied) checkpoint_.ignore_tensor("lm_loss.weight");
    head_ =
        config_.tied ? words_ : parts_.matrix("lm_loss.weight", config_.vocabulary, config_.width);
    head_bias_ = parts_.vector("lm_loss.bias", config_.vocabulary);
  }

  Layer read_layer(uint32_t index) {
    const std::string prefix = prefix_ + "layer." + std::to_string(index) + ".";
    const std::string attention = prefix + "rel_attn.";
    const uint32_t width = config_.width, inner = config_.inner_width;
    Layer layer = {};
    layer.q = read_projection(attention + "q");
    layer.k = read_projection(attention + "k");
    layer.v = read_projection(attention + "v");
    // Stored with the output's width first, unlike the others.
    layer.o = builder_.weight(attention + "o", width, width, read_heads(attention + "o"));
    layer.relative = read_relative(attention);
    layer.types_table = builder_.weight(
        attention + "seg_embed", 2, width,
        checkpoint_.tensor(attention + "seg_embed", {2, config_.heads, head_width()}));
    layer.types_bias =
        builder_.weight(attention + "r_s_bias", 1, width, read_bias(attention + "r_s_bias"));
    layer.attention_norm = read_norm(attention + "layer_norm");
    layer.wide = parts_.matrix(prefix + "ff.layer_1.weight", inner, width);
    layer.wide_bias = parts_.vector(prefix + "ff.layer_1.bias", inner);
    layer.narrow = parts_.matrix(prefix + "ff.layer_2.weight", width, inner);
    layer.narrow_bias = parts_.vector(prefix + "ff.layer_2.bias", width);
    layer.inner_norm = read_norm(prefix + "ff.layer_norm");
    if (config_.memory_rows == 0) return layer;
    const std::string memory = "mem.layer" + std::to_string(index);
    const uint32_t ring = builder_.ring(memory, config_.memory_rows);
    for (const char* part : {"", ".k", ".v"}) {
      layer.memory.push_back(builder_.ring_state(memory + part, ring, width));
    }
    return layer;
  }

  uint32_t head_width() const { return config_.width / config_.heads; }
  /// The greatest distance to an earlier token, from the place behind the last, and to a later one.
  uint32_t behind() const {
    return limited(config_.capacity != 0 ? config_.capacity
                                         : config_.memory_rows + config_.max_segment);
  }
  uint32_t ahead() const { return limited(config_.max_segment - 1); }
  uint32_t limited(uint32_t distance) const {
    return config_.farthest == 0 ? distance : std::min(distance, config_.farthest);
  }

  std::vector<float> distances() const {
    std::vector<double> all, frequencies;
    for (int64_t d = -int64_t{ahead()}; d <= int64_t{behind()}; ++d) {
      all.push_back(static_cast<double>(d));
    }
    for (uint32_t i = 0; i < config_.width; i += 2) {
      frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / config_.width));
    }
    return sinusoids(all, frequencies);
  }

  /// [width, heads, head width] as stored.
  std::vector<float> read_heads(const std::string& name) const {
    return checkpoint_.tensor(name, {config_.width, config_.heads, head_width()});
  }
  std::vector<float> read_bias(const std::string& name) const {
    return checkpoint_.tensor(name, {config_.heads, head_width()});
  }
  Norm read_norm(const std::string& prefix) {
    return {parts_.vector(prefix + ".weight", config_.width),
            parts_.vector(prefix + ".bias", config_.width)};
  }
  uint32_t read_projection(const std::string& name) {
    const uint32_t width = config_.width;
    return builder_.weight(name, width, width, transposed(read_heads(name), width, width));
  }

  GraphBuilder::Relative read_relative(const std::string& prefix) {
    const uint32_t width = config_.width, rows = ahead() + behind() + 1;
    std::vector<float> table = product(sinusoids_, read_heads(prefix + "r"), width, width);
    const std::vector<float> query = read_bias(prefix + "r_r_bias");
    std::vector<float> bias;
    for (size_t first = 0; first < table.size(); first += head_width()) {
      double sum = 0;
      for (uint32_t i = 0; i < head_width(); ++i) {
        sum += double{table[first + i]} * query[first % width + i];
      }
      bias.push_back(static_cast<float>(sum));
    }
    return {builder_.weight(prefix + "r", rows, width, std::move(table)),
            builder_.weight(prefix + "r_r_bias", rows, config_.heads, std::move(bias)),
            builder_.weight(prefix + "r_w_bias", 1, width, read_bias(prefix + "r_w_bias"))};
  }

  GraphBuilder::Attention attention(const Layer& layer, GraphBuilder::Source own) const {
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = config_.heads;
    attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width())));
    attention.pattern.kind = schema::PatternKind::Full;
    attention.relative = layer.relative;
    attention.relative_zero = ahead();
    attention.key_mask = mask_;
    if (!layer.memory.empty()) attention.sources.push_back({layer.memory[1], layer.memory[2]});
    attention.sources.push_back(own);
    return attention;
  }

  uint32_t project(const std::string& name, uint32_t x, uint32_t weight) {
    return builder_.linear(name, x, weight, GraphBuilder::kNone);
  }

  /// What follows attention, for tokens and for the query alike.
  uint32_t finish(const std::string& name, const std::string& output, const Layer& layer,
                  uint32_t x, uint32_t attended) {
    const uint32_t projected = project(name + ".attention.out", attended, layer.o);
    const uint32_t y =
        norm(name + ".attention.normed", builder_.add(name + ".attention.sum", x, projected),
             layer.attention_norm);
    const uint32_t wide = builder_.linear(name + ".ff.wide", y, layer.wide, layer.wide_bias);
    const uint32_t active = builder_.activate(name + ".ff.active", wide, config_.activation);
    const uint32_t narrow =
        builder_.linear(name + ".ff.out", active, layer.narrow, layer.narrow_bias);
    return norm(output, builder_.add(name + ".ff.sum", y, narrow), layer.inner_norm);
  }
  uint32_t norm(const std::string& name, uint32_t x, const Norm& norm) {
    return builder_.layer_norm(name, x, norm.weight, norm.bias, config_.epsilon);
  }

  /// `query`, if it is not null, moves on by this layer too.
  uint32_t layer(size_t index, uint32_t x, uint32_t* query = nullptr) {
    const Layer& layer = layers_[index];
    const std::string name = "layer" + std::to_string(index);
    const uint32_t k = project(name + ".k", x, layer.k);
    const uint32_t v = project(name + ".v", x, layer.v);
    // With a query nobody sees what the last layer makes of the tokens.
    uint32_t y = x;
    if (query == nullptr || index + 1 < layers_.size()) {
      GraphBuilder::Attention among_tokens = attention(layer, {k, v});
      among_tokens.segments = {types_, layer.types_table, layer.types_bias};
      among_tokens.mask_keeps_own = true;
      const uint32_t attended =
          builder_.attention(name + ".attention", project(name + ".q", x, layer.q), among_tokens);
      y = finish(name, "hidden_states." + std::to_string(index + 1), layer, x, attended);
      builder_.debug_output(y);
    }
    if (query != nullptr) {
      GraphBuilder::Attention from_behind = attention(layer, {k, v});
      from_behind.own = false;
      const uint32_t attended = builder_.attention(
          name + ".query.attention", project(name + ".query.q", *query, layer.q), from_behind);
      *query = finish(name + ".query", name + ".query.out", layer, *query, attended);
    }
    if (layer.memory.empty()) return y;
    schema::RingPushOptionsT push;
    push.first = config_.reuse_rows;
    builder_.ring_push({x, k, v}, layer.memory, push);
    return y;
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  std::string prefix_;
  bool has_head_;
  uint32_t mask_ = 0, types_ = 0;
  uint32_t words_ = 0, head_ = 0, head_bias_ = 0;
  /// Of every distance, from the farthest ahead to the farthest behind.
  std::vector<float> sinusoids_;
  std::vector<Layer> layers_;
};

}  // namespace

void import_xlnet(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Config config = read_config(checkpoint, options, graph);
  Model(checkpoint, config, graph).build();
  write_metadata(checkpoint, graph,
                 {{"d_inner", config.inner_width},
                  {"d_model", config.width},
                  {"max_segment", config.max_segment},
                  {"mem_len", config.memory_rows},
                  {"n_head", config.heads},
                  {"n_layer", config.layers},
                  {"vocabulary", config.vocabulary}});
  graph.model.metadata->states_time_major = true;
  read_generation(checkpoint, config.vocabulary, graph);
}

}  // namespace oxbow::convert
