// The Universal Transformer of andreamad8/Universal-Transformer-Pytorch, which answers questions about stories: one layer
// applied up to num_layers times, each time with signals of position and round added, and with `act` until every
// sentence has halted. The rounds are unrolled and share their weights; a round without rows costs nothing.

#include <algorithm>
#include <cmath>

#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr float kEpsilon = 1e-6f;
constexpr float kThreshold = 0.9f;
constexpr uint32_t kTaps = 3;
/// Words of a story, unless the user says otherwise.
constexpr uint32_t kDefaultWords = 1024;

struct Config {
  uint32_t vocabulary, width, rounds, heads, key_width, value_width, inner;
  uint32_t longest_sentence, max_words;
  bool act, causal;
};

Config read_config(const Checkpoint& checkpoint, const ImportOptions& options) {
  Config config;
  config.vocabulary = checkpoint.size("num_vocab", 1, kMaxSize);
  config.width = checkpoint.size("hidden_size", 4, kMaxSize);
  const uint32_t embedding = checkpoint.size("embedding_size", 4, kMaxSize);
  if (embedding != config.width) {
    checkpoint.refuse("embedding_size is " + std::to_string(embedding) +
                      ", expected hidden_size, " + std::to_string(config.width) +
                      ": the original has a projection only then");
  }
  config.rounds = checkpoint.size("num_layers", 1, 256);
  config.heads = checkpoint.size("num_heads", 1, 4096);
  config.key_width = checkpoint.size("total_key_depth", 1, kMaxSize);
  config.value_width = checkpoint.size("total_value_depth", 1, kMaxSize);
  require_multiple(checkpoint, "total_key_depth", config.key_width, "num_heads", config.heads);
  require_multiple(checkpoint, "total_value_depth", config.value_width, "num_heads", config.heads);
  config.inner = checkpoint.size("filter_size", 1, kMaxSize);
  config.act = checkpoint.flag("act", false);
  config.causal = checkpoint.flag("use_mask", false);
  config.longest_sentence = stored_rows(checkpoint, "mask");
  config.max_words = options.max_segment != 0 ? options.max_segment : kDefaultWords;
  checkpoint.ignore_keys(
      {"max_length", "input_dropout", "layer_dropout", "attention_dropout", "relu_dropout"});
  ignore_common_keys(checkpoint);
  return config;
}

/// The original's signal: frequencies from 1 down to 1 / 10000, sines first, a zero at the end of an odd width.
std::vector<float> signals(uint32_t rows, uint32_t width) {
  const uint32_t count = width / 2;
  std::vector<double> frequencies, positions;
  for (uint32_t i = 0; i < count; ++i) {
    frequencies.push_back(std::exp(-std::log(1e4) / (count - 1) * i));
  }
  for (uint32_t p = 0; p < rows; ++p) positions.push_back(p);
  const std::vector<float> even = sinusoids(positions, frequencies);
  if (width % 2 == 0) return even;
  std::vector<float> odd;
  for (uint32_t p = 0; p < rows; ++p) {
    const std::vector<float> row = rows_of(even, 2 * count, p, 1);
    odd.insert(odd.end(), row.begin(), row.end());
    odd.push_back(0.0f);
  }
  return odd;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {}

  void build() {
    uint32_t x = sentences();
    positions_ = builder_.weight("positions", config_.max_words + 1, config_.width,
                                 signals(config_.max_words + 1, config_.width));
    GraphBuilder::Halted halted;
    for (uint32_t round = 0; round < config_.rounds; ++round) {
      const std::string name = "round" + std::to_string(round);
      const uint32_t z = with_signals(name, round, x);
      const uint32_t y = layer(name, z);
      x = y;
      if (!config_.act) continue;
      const uint32_t p = builder_.activate(
          name + ".p",
          parts_.linear(name + ".halt", z, "transformer_enc.act_fn.p", config_.width, 1),
          schema::Activation::Sigmoid);
      halted = builder_.halt(name + ".halted", p, y, halted, kThreshold,
                             builder_.symbol(name + ".running", config_.max_words + 1));
      x = halted.x;
    }
    if (config_.act) x = halted.mix;
    GraphBuilder::PoolRows mean;
    mean.x = {x};
    mean.mean = true;
    builder_.logits(builder_.pool_rows("mean", mean, GraphBuilder::kNone), words(),
                    parts_.vector("W.bias", config_.vocabulary));
    if (config_.act) {
      builder_.output("act.remainders", builder_.slice_columns("remainders", halted.counts, 1, 1));
      builder_.output("act.n_updates", builder_.slice_columns("n_updates", halted.counts, 2, 1));
    }
    for (const char* unused :
         {"transformer_enc.layer_norm.gamma", "transformer_enc.layer_norm.beta", "W.weight"}) {
      checkpoint_.ignore_tensor(unused);
    }
  }

 private:
  uint32_t words() { return parts_.matrix("emb.weight", config_.vocabulary, config_.width); }

  /// A row for each sentence, the question's last: the sum of its words' vectors times the mask of their places.
  uint32_t sentences() {
    GraphBuilder::Entry entry;
    entry.tokens = "story";
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = config_.max_words;
    entry.starts = true;
    builder_.begin_entry(entry);
    const uint32_t query = builder_.input("query", config_.vocabulary, 0,
                                          builder_.symbol("query_words", config_.longest_sentence));
    GraphBuilder::PoolRows sum;
    sum.shape = builder_.input("story.shape", INT32_MAX, 0, builder_.symbol("story_dimensions", 2));
    sum.x = {builder_.embedding("story.words", builder_.tokens(), words()),
             builder_.embedding("query.words", query, words())};
    sum.group = config_.longest_sentence;
    sum.factors = parts_.matrix("mask", config_.longest_sentence, config_.width);
    const uint32_t rows =
        builder_.pool_rows("sentences", sum, builder_.symbol("positions", config_.max_words + 1));
    return parts_.linear("projected", rows, "transformer_enc.embedding_proj", config_.width,
                         config_.width, false);
  }

  uint32_t with_signals(const std::string& name, uint32_t round, uint32_t x) {
    const uint32_t placed =
        builder_.add(name + ".placed", x, builder_.first_rows(name + ".positions", positions_, x));
    const std::vector<float> all = signals(config_.rounds, config_.width);
    return builder_.add(
        name + ".in", placed,
        builder_.weight(name + ".signal", 1, config_.width, rows_of(all, config_.width, round, 1)));
  }

  uint32_t norm(const std::string& name, uint32_t x, const std::string& prefix) {
    return builder_.deviation_norm(name, x, parts_.vector(prefix + ".gamma", config_.width),
                                   parts_.vector(prefix + ".beta", config_.width), kEpsilon);
  }

  /// A convolution over positions with zeros outside of the text, and its activation.
  uint32_t convolve(const std::string& name, uint32_t x, uint32_t index, uint32_t in,
                    uint32_t out) {
    const std::string prefix =
        "transformer_enc.enc.positionwise_feed_forward.layers." + std::to_string(index) + ".conv";
    uint32_t& weight = convolutions_[index];
    if (weight == GraphBuilder::kNone) {
      const std::vector<float> kernel = checkpoint_.tensor(prefix + ".weight", {out, in, kTaps});
      weight = builder_.weight(prefix + ".weight", out, kTaps * in,
                               convolution_matrix(kernel, out, in, kTaps));
    }
    const uint32_t wide = builder_.concat_columns(
        name + ".rows", {builder_.repeat_rows(name + ".before", x, x, 1, -1), x,
                         builder_.repeat_rows(name + ".behind", x, x, 1, 1)});
    return builder_.activate(
        name, builder_.linear(name + ".sum", wide, weight, parts_.vector(prefix + ".bias", out)),
        schema::Activation::Relu);
  }

  uint32_t layer(const std::string& name, uint32_t x) {
    const std::string prefix = "transformer_enc.enc.", mha = prefix + "multi_head_attention.";
    const uint32_t z = norm(name + ".normed", x, prefix + "layer_norm_mha");
    const auto project = [&](const char* to, const char* which, uint32_t width) {
      return parts_.linear(name + to, z, mha + which, config_.width, width, false);
    };
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = config_.heads;
    attention.scale = attention_scale(config_.key_width / config_.heads);
    attention.pattern.kind =
        config_.causal ? schema::PatternKind::Causal : schema::PatternKind::Full;
    const uint32_t q = project(".q", "query_linear", config_.key_width);
    attention.sources = {{project(".k", "key_linear", config_.key_width),
                          project(".v", "value_linear", config_.value_width)}};
    const uint32_t attended = builder_.add(
        name + ".attended", x,
        parts_.linear(name + ".o", builder_.attention(name + ".attention", q, attention),
                      mha + "output_linear", config_.value_width, config_.width, false));
    const uint32_t y = norm(name + ".ff.normed", attended, prefix + "layer_norm_ffn");
    const uint32_t wide = convolve(name + ".ff.wide", y, 0, config_.width, config_.inner);
    return builder_.add(name + ".out", attended,
                        convolve(name + ".ff.out", wide, 1, config_.inner, config_.width));
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t positions_ = GraphBuilder::kNone;
  uint32_t convolutions_[2] = {GraphBuilder::kNone, GraphBuilder::kNone};
};

}  // namespace

void import_universal_transformer_babi(const Checkpoint& checkpoint, const ImportOptions& options,
                                       Graph& graph) {
  const Config config = read_config(checkpoint, options);
  Model(checkpoint, config, graph).build();
  graph.model.task = schema::Task::Classify;
  write_metadata(checkpoint, graph,
                 {{"filter_size", config.inner},
                  {"heads", config.heads},
                  {"hidden_size", config.width},
                  {"max_words", config.max_words},
                  {"num_layers", config.rounds},
                  {"vocabulary", config.vocabulary}});
}

}  // namespace oxbow::convert
