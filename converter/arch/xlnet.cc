// XLNet (Yang et al. 2019) as in Hugging Face's library: post-norm layers whose tokens see their whole
// run, on both sides, and the inputs that this layer had for earlier tokens. Distances, signed, are
// scored as in Transformer-XL, and so is whether two tokens belong to the same segment.
//
//   scale * ((q + r_w_bias) . k + (q + r_r_bias) . W_r s(d) + (q + r_s_bias) . seg_embed[same?])
//
// with s(d) the sines and cosines of distance d. W_r s(d) is a table, made here.

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
  require_multiple("d_model", config.width, "two", 2);
  config.heads = checkpoint.size("n_head", 1, config.width);
  require_multiple("d_model", config.width, "n_head", config.heads);
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
        prefix_(optional_prefix(checkpoint, "transformer.", "word_embedding.weight")) {
    GraphBuilder::Entry entry;
    entry.vocabulary = config.vocabulary;
    entry.max_segment = config.max_segment;
    entry.capacity = config.capacity;
    entry.starts = config.memory_rows == 0;
    if (entry.starts) entry.name = "encode";
    builder_.begin_entry(entry);
    mask_ = builder_.input("attention_mask", 2, 1);
    // Only whether they are equal matters: when all are, a query's scores change by the same amount.
    types_ = builder_.input("token_type_ids", kMaxSize, 0);
    sinusoids_ = distances();
    // Stands for a token that is to be predicted, which no output here does.
    checkpoint.ignore_tensor(prefix_ + "mask_emb");
  }

  void build() {
    const uint32_t words =
        parts_.matrix(prefix_ + "word_embedding.weight", config_.vocabulary, config_.width);
    uint32_t x = builder_.embedding("hidden_states.0", builder_.tokens(), words);
    builder_.debug_output(x);
    for (uint32_t i = 0; i < config_.layers; ++i) x = layer(i, x);
    if (!checkpoint_.has_tensor("lm_loss.bias")) {
      graph_.model.task = schema::Task::Encode;
      builder_.output("last_hidden_state", x);
      return;
    }
    // The other name of the same numbers.
    if (config_.tied) checkpoint_.ignore_tensor("lm_loss.weight");
    builder_.debug_output(x, "last_hidden_state");
    graph_.model.task = schema::Task::FillMask;
    builder_.logits(
        builder_.take_rows("tail", x),
        config_.tied ? words : parts_.matrix("lm_loss.weight", config_.vocabulary, config_.width),
        parts_.vector("lm_loss.bias", config_.vocabulary));
  }

 private:
  uint32_t head_width() const { return config_.width / config_.heads; }
  /// The greatest distance to an earlier token, and to a later one.
  uint32_t behind() const {
    const uint32_t seen_keys =
        config_.capacity != 0 ? config_.capacity : config_.memory_rows + config_.max_segment;
    return limited(seen_keys - 1);
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
  uint32_t project(const std::string& name, uint32_t x, const std::string& tensor) {
    const uint32_t width = config_.width;
    const uint32_t weight =
        builder_.weight(tensor, width, width, transposed(read_heads(tensor), width, width));
    return builder_.linear(name, x, weight, GraphBuilder::kNone);
  }

  GraphBuilder::Relative relative(const std::string& prefix) {
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

  GraphBuilder::Segments segments(const std::string& prefix) {
    const uint32_t width = config_.width;
    return {
        types_,
        builder_.weight(prefix + "seg_embed", 2, width,
                        checkpoint_.tensor(prefix + "seg_embed", {2, config_.heads, head_width()})),
        builder_.weight(prefix + "r_s_bias", 1, width, read_bias(prefix + "r_s_bias"))};
  }

  uint32_t attend(const std::string& name, const std::string& prefix, uint32_t x) {
    const uint32_t q = project(name + ".q", x, prefix + "q");
    const uint32_t k = project(name + ".k", x, prefix + "k");
    const uint32_t v = project(name + ".v", x, prefix + "v");
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = config_.heads;
    attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width())));
    attention.pattern.kind = schema::PatternKind::Full;
    attention.relative = relative(prefix);
    attention.relative_zero = ahead();
    attention.segments = segments(prefix);
    attention.key_mask = mask_;
    attention.mask_keeps_own = true;
    attention.sources = {{k, v}};
    if (config_.memory_rows == 0) return builder_.attention(name + ".attention", q, attention);

    const std::string memory = "mem." + name;
    const uint32_t ring = builder_.ring(memory, config_.memory_rows);
    const std::vector<uint32_t> states = {builder_.ring_state(memory, ring, config_.width),
                                          builder_.ring_state(memory + ".k", ring, config_.width),
                                          builder_.ring_state(memory + ".v", ring, config_.width)};
    attention.sources.insert(attention.sources.begin(), {states[1], states[2]});
    const uint32_t attended = builder_.attention(name + ".attention", q, attention);
    schema::RingPushOptionsT push;
    push.first = config_.reuse_rows;
    builder_.ring_push({x, k, v}, states, push);
    return attended;
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string prefix = prefix_ + "layer." + std::to_string(index) + ".";
    const uint32_t width = config_.width, inner = config_.inner_width;
    const uint32_t attended = attend(name, prefix + "rel_attn.", x);
    // Stored with the output's width first, unlike the others.
    const std::string out = prefix + "rel_attn.o";
    const uint32_t projected =
        builder_.linear(name + ".attention.out", attended,
                        builder_.weight(out, width, width, read_heads(out)), GraphBuilder::kNone);
    const uint32_t y = parts_.layer_norm(name + ".attention.normed",
                                         builder_.add(name + ".attention.sum", x, projected),
                                         prefix + "rel_attn.layer_norm", width, config_.epsilon);
    const uint32_t wide = parts_.linear(name + ".ff.wide", y, prefix + "ff.layer_1", width, inner);
    const uint32_t active = builder_.activate(name + ".ff.active", wide, config_.activation);
    const uint32_t narrow =
        parts_.linear(name + ".ff.out", active, prefix + "ff.layer_2", inner, width);
    const uint32_t z = parts_.layer_norm("hidden_states." + std::to_string(index + 1),
                                         builder_.add(name + ".ff.sum", y, narrow),
                                         prefix + "ff.layer_norm", width, config_.epsilon);
    builder_.debug_output(z);
    return z;
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  std::string prefix_;
  uint32_t mask_ = 0, types_ = 0;
  /// Of every distance, from the farthest ahead to the farthest behind.
  std::vector<float> sinusoids_;
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
