// Reformer (Kitaev et al. 2020) as in Hugging Face's library. Two streams of rows, which both begin as the embeddings,
// and each layer adds to one what it makes of the other:
//
//   y1 = x1 + attention(norm(x2))      y2 = x2 + feed_forward(norm(y1))
//
// A local layer's tokens see their chunk and those beside it. Those of an lsh layer are sorted by hashes of their
// queries, which are their keys as well, and see the chunks of that order; several rounds of hashing are mixed. Texts
// are filled up inside to whole chunks; a layer attends in full to a text no longer than its chunk.
//
// With --context a decoder has an entry point that goes on instead: it keeps keys, values and buckets of so many tokens,
// and each token behind the first run meets its chunk among those (ops/attention/cached_run.cc).

#include <algorithm>
#include <numeric>

#include "converter/blocks/parts.h"
#include "converter/blocks/torch_random.h"
#include "host/errors.h"
#include "ops/hash_buckets/hash_buckets.h"
#include "runtime/op.h"

namespace oxbow::convert {
namespace {

/// Of one kind of layer.
struct Chunks {
  uint32_t length, before, after;
};

struct Reformer {
  uint32_t vocabulary, width, heads, head_width, inner, positions;
  float epsilon;
  schema::Activation activation;
  bool causal;
  /// For each layer.
  std::vector<bool> hashed;
  Chunks local, lsh;
  std::vector<uint32_t> buckets;
  uint32_t rounds;
  /// Of rotations; negative: the original draws new ones for every text.
  int64_t seed;
  uint32_t pad_token;
  /// Factors of the table of positions, and their parts of the width; empty: it is whole.
  std::vector<uint32_t> axes, axis_widths;
  /// Texts of more than `pad_above` tokens are filled up to a multiple.
  uint32_t pad_multiple, pad_above;

  uint32_t all_heads() const { return heads * head_width; }
  bool has_hashes() const { return std::find(hashed.begin(), hashed.end(), true) != hashed.end(); }
};

constexpr const char* kHead = "lm_head.decoder.weight";

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Reformer& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_),
        prefix_(optional_prefix(checkpoint, "reformer.", "embeddings.word_embeddings.weight")) {
    begin(options);
    uint32_t x1 = embeddings(), x2 = x1;
    keep(x2, 0);
    for (uint32_t i = 0; i < config_.hashed.size(); ++i) {
      const std::string name = "layer" + std::to_string(i);
      const std::string of = prefix_ + "encoder.layers." + std::to_string(i) + ".";
      x1 = builder_.add(name + ".stream1", attention(i, name + ".attention", x2, of + "attention."),
                        x1);
      x2 =
          builder_.add(name + ".stream2", feed_forward(name + ".ff", x1, of + "feed_forward."), x2);
      keep(x2, i + 1);
    }
    head(x1, x2);
    describe();
  }

 private:
  void begin(const ImportOptions& options) {
    read_context(options);
    if (goes_on()) return begin_step(options);
    max_segment_ = options.max_segment == 0 ? config_.positions : options.max_segment;
    if (max_segment_ > config_.positions) {
      throw InputError("--max-segment is " + std::to_string(max_segment_) +
                       ", expected at most the model's positions, " +
                       std::to_string(config_.positions));
    }
    GraphBuilder::Entry entry;
    entry.name = "encode";
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = max_segment_;
    entry.starts = true;
    builder_.begin_entry(entry);
    uint32_t rows = max_segment_;
    if (rows > config_.pad_above) {
      rows = (rows + config_.pad_multiple - 1) / config_.pad_multiple * config_.pad_multiple;
    }
    rows_symbol_ = builder_.symbol("rows", rows);
    tokens_ = padded(builder_.tokens(), config_.pad_token);
    mask_ = padded(builder_.input("attention_mask", 2, 1), 0);
    if (!config_.has_hashes()) return;
    count_buckets(rows);
    order_symbol_ = builder_.symbol("order_rows", bucket_rows_);
  }

  bool goes_on() const { return context_ != 0; }

  void read_context(const ImportOptions& options) {
    if (options.context == 0 || !config_.causal || !checkpoint_.has_tensor(kHead)) return;
    graph_.keeps_context = true;
    if (options.ring || options.sinks != 0) {
      throw UsageError("--ring and --sinks are not for reformer: it has no more positions");
    }
    if (options.context > config_.positions || options.context < 2) {
      throw UsageError("--context is " + std::to_string(options.context) +
                       ", expected 2 to the model's positions, " +
                       std::to_string(config_.positions));
    }
    context_ = options.context;
  }

  void begin_step(const ImportOptions& options) {
    max_segment_ = options.max_segment == 0 ? context_ : std::min(options.max_segment, context_);
    GraphBuilder::Entry entry;
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = max_segment_;
    entry.capacity = context_;
    builder_.begin_entry(entry);
    tokens_ = builder_.tokens();
    if (config_.has_hashes()) count_buckets(max_segment_);
  }

  void count_buckets(uint32_t rows) {
    const uint64_t buckets = uint64_t{rows} * config_.heads * config_.rounds;
    if (buckets > INT32_MAX) {
      checkpoint_.refuse("num_hashes is " + std::to_string(config_.rounds) + ", too many for " +
                         std::to_string(rows) + " tokens");
    }
    bucket_rows_ = static_cast<uint32_t>(std::min<uint64_t>(buckets, INT32_MAX));
    buckets_symbol_ = builder_.symbol("bucket_rows", bucket_rows_);
  }

  uint32_t padded(uint32_t ids, uint32_t value) {
    schema::PadRowsOptionsT options;
    options.multiple = config_.pad_multiple;
    options.above = config_.pad_above;
    options.value = static_cast<int32_t>(value);
    return builder_.pad_rows(graph_.tensor(ids).name + ".padded", ids, rows_symbol_, options);
  }

  uint32_t embeddings() {
    const std::string of = prefix_ + "embeddings.";
    const uint32_t words = builder_.embedding(
        "words", tokens_,
        parts_.matrix(of + "word_embeddings.weight", config_.vocabulary, config_.width));
    return builder_.add("embedded", words, places(of + "position_embeddings."));
  }

  /// Position p is the row p of a table, or one row of each factor of it side by side: those that p is made of when it
  /// is written with the axes as its digits.
  uint32_t places(const std::string& of) {
    if (config_.axes.empty()) {
      const uint32_t ids = builder_.positions("positions", config_.positions, {}, tokens_);
      return builder_.embedding(
          "places", ids, parts_.matrix(of + "embedding.weight", config_.positions, config_.width));
    }
    std::vector<uint32_t> parts;
    uint32_t divisor = config_.positions;
    for (size_t axis = 0; axis < config_.axes.size(); ++axis) {
      const uint32_t rows = config_.axes[axis], width = config_.axis_widths[axis];
      divisor /= rows;
      schema::PositionsOptionsT options;
      options.divisor = divisor;
      // Behind the last position of all there is none.
      options.wrap = axis == 0 ? 0 : rows;
      const std::string number = std::to_string(axis);
      std::vector<uint64_t> shape(config_.axes.size(), 1);
      shape[axis] = rows;
      shape.push_back(width);
      const uint32_t table = builder_.weight(of + "weights." + number, rows, width,
                                             checkpoint_.tensor(of + "weights." + number, shape));
      const uint32_t ids = builder_.positions("positions" + number, rows, options, tokens_);
      parts.push_back(builder_.embedding("places" + number, ids, table));
    }
    return parts.size() == 1 ? parts[0] : builder_.concat_columns("places", parts);
  }

  /// References cut off what was filled up.
  void keep(uint32_t x, uint32_t index) {
    const std::string name = "hidden_states." + std::to_string(index);
    builder_.debug_output(of_text(name, x), name);
  }
  uint32_t of_text(const std::string& name, uint32_t x) {
    return goes_on() ? x : builder_.token_rows(name, x);
  }

  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.layer_norm(name, x, of, config_.width, config_.epsilon);
  }
  uint32_t project(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.linear(name, x, of, config_.width, config_.all_heads(), false);
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t z = norm(name + ".normed", x, of + "layer_norm");
    const std::string self = of + "self_attention.";
    for (const char* constant : {"mask_value_float16", "mask_value_float32",
                                 "self_mask_value_float16", "self_mask_value_float32"}) {
      checkpoint_.ignore_tensor(self + constant);
    }
    const bool hashed = config_.hashed[index];
    const uint32_t q = project(name + ".q", z, self + (hashed ? "query_key" : "query"));
    const uint32_t k =
        hashed ? builder_.rms_norm(name + ".k", q, GraphBuilder::kNone, 1e-6f, config_.heads)
               : project(name + ".k", z, self + "key");
    const uint32_t v = project(name + ".v", z, self + "value");
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = attention_scale(config_.head_width);
    options.sources = {{k, v}};
    const Chunks& chunks = hashed ? config_.lsh : config_.local;
    options.pattern.kind = schema::PatternKind::Circle;
    options.pattern.length = options.pattern.full_up_to = chunks.length;
    options.pattern.before = chunks.before;
    options.pattern.after = chunks.after;
    options.pattern.causal = config_.causal;
    if (hashed) {
      options.pattern.rounds = config_.rounds;
      options.own_score = -1e5f;
    }
    uint32_t attended = GraphBuilder::kNone;
    if (goes_on()) {
      attended = attend_and_keep(index, name, q, options);
    } else {
      options.key_mask = mask_;
      if (hashed) options.order = order(index, name, q);
      attended = builder_.attention(name, q, options);
    }
    return parts_.linear(name + ".out", attended, of + "output.dense", config_.all_heads(),
                         config_.width, false);
  }

  /// Behind the rows that were kept.
  uint32_t attend_and_keep(uint32_t index, const std::string& name, uint32_t q,
                           GraphBuilder::Attention& options) {
    const std::string layer = "layer" + std::to_string(index);
    const GraphBuilder::Source own = options.sources[0];
    const uint32_t ring = builder_.ring("cache." + layer, context_);
    const GraphBuilder::Source kept = {
        builder_.ring_state("key." + layer, ring, config_.all_heads()),
        builder_.ring_state("value." + layer, ring, config_.all_heads())};
    options.sources = {kept, own};
    const bool whole = config_.pad_multiple == options.pattern.length;
    options.pattern.full_up_to = whole ? options.pattern.length : config_.pad_above;
    options.pattern.block_width = config_.pad_multiple;
    if (!config_.hashed[index]) {
      const uint32_t attended = builder_.attention(name, q, options);
      builder_.ring_push({own.k, own.v}, {kept.k, kept.v});
      return attended;
    }
    const uint32_t buckets = hash(index, name, q, 0), columns = config_.heads * config_.rounds;
    uint32_t fresh = GraphBuilder::kNone;
    options.order = buckets;
    const uint32_t attended = builder_.attention(name, q, options, &fresh);
    // Its second output is what is kept of buckets, and the term that reads them has that of earlier rows as well.
    const uint32_t codes = builder_.ring_state("code." + layer, ring, columns);
    for (const uint32_t each : {fresh, codes}) {
      schema::TensorT& tensor = graph_.tensor(each);
      tensor.type = schema::DataType::I32;
      tensor.width = columns;
      tensor.limit = graph_.tensor(buckets).limit / config_.rounds * 4;
    }
    const uint32_t given = given_buckets(layer, buckets);
    schema::StepT& step = *graph_.main_entry().steps.back();
    step.inputs.insert(step.inputs.end(), {codes, given});
    for (const auto& term : step.options.AsAttentionOptions()->terms) {
      if (term->kind == schema::TermKind::Order) term->inputs = 3;
    }
    builder_.ring_push({own.k, own.v, fresh}, {kept.k, kept.v, codes});
    return attended;
  }

  uint32_t hash(uint32_t index, const std::string& name, uint32_t q, uint32_t above) {
    schema::HashBucketsOptionsT options;
    options.heads = config_.heads;
    options.rounds = config_.rounds;
    options.buckets = config_.buckets;
    options.above = above;
    return builder_.hash_buckets(name + ".buckets", q,
                                 rotations("layer" + std::to_string(index) + ".rotations"), mask_,
                                 buckets_symbol_, options);
  }

  /// Of rows by the buckets of their queries, or by those that the caller gives.
  uint32_t order(uint32_t index, const std::string& name, uint32_t q) {
    const std::string layer = "layer" + std::to_string(index);
    const uint32_t buckets = hash(index, name, q, config_.lsh.length);
    return builder_.sort_rows(name + ".order", buckets, given_buckets(layer, buckets),
                              order_symbol_, config_.heads * config_.rounds);
  }

  /// Those that the caller may give in place of those that are computed.
  uint32_t given_buckets(const std::string& layer, uint32_t computed) {
    builder_.debug_output(computed, layer + ".buckets");
    return builder_.input(layer + ".buckets", graph_.tensor(computed).limit, 0,
                          builder_.symbol(layer + ".given", bucket_rows_));
  }

  /// Those of a layer, or what the seed draws, which is the same for all layers.
  uint32_t rotations(const std::string& name) {
    const uint32_t half = std::accumulate(config_.buckets.begin(), config_.buckets.end(), 0u) / 2;
    const uint32_t rows = config_.all_heads(), columns = config_.rounds * half;
    if (checkpoint_.has_tensor(name)) {
      return builder_.weight(
          name, rows, columns,
          checkpoint_.tensor(name, {config_.heads, config_.head_width, config_.rounds, half}));
    }
    if (drawn_ != GraphBuilder::kNone) return drawn_;
    const size_t count = size_t{rows} * columns;
    const uint64_t seed = config_.seed >= 0 ? static_cast<uint64_t>(config_.seed) : 0;
    return drawn_ = builder_.weight("rotations", rows, columns, torch_normals(seed, count));
  }

  uint32_t feed_forward(const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t z = norm(name + ".normed", x, of + "layer_norm");
    const uint32_t wide =
        parts_.linear(name + ".wide", z, of + "dense.dense", config_.width, config_.inner);
    const uint32_t active = builder_.activate(name + ".active", wide, config_.activation);
    return parts_.linear(name + ".out", active, of + "output.dense", config_.inner, config_.width);
  }

  /// Both streams side by side, normed.
  uint32_t streams(uint32_t x1, uint32_t x2) {
    return parts_.layer_norm("streams.normed", builder_.concat_columns("streams", {x1, x2}),
                             prefix_ + "encoder.layer_norm", 2 * config_.width, config_.epsilon);
  }

  void head(uint32_t x1, uint32_t x2) {
    const uint32_t text1 = of_text("text1", x1), text2 = of_text("text2", x2);
    if (checkpoint_.has_tensor("classifier.out_proj.weight")) {
      classify(streams(builder_.first_row("classifier.token1", text1),
                       builder_.first_row("classifier.token2", text2)));
      return;
    }
    const uint32_t last =
        streams(builder_.take_rows("tail1", text1), builder_.take_rows("tail2", text2));
    if (!checkpoint_.has_tensor(kHead)) {
      graph_.model.task = schema::Task::Encode;
      builder_.output("last_hidden_state", last);
      return;
    }
    // Without an entry point that continues a text, a decoder tells what follows each token but generates nothing.
    graph_.model.task = goes_on()        ? schema::Task::Generate
                        : config_.causal ? schema::Task::Encode
                                         : schema::Task::FillMask;
    if (config_.causal && !goes_on()) {
      graph_.warnings.push_back("the file reads a text as a whole; with --context N, of at most " +
                                std::to_string(config_.positions) + " tokens, it generates");
    }
    const bool own_bias = checkpoint_.has_tensor("lm_head.bias");
    // Another name of the same numbers.
    if (own_bias) checkpoint_.ignore_tensor("lm_head.decoder.bias");
    const uint32_t bias =
        parts_.vector(own_bias ? "lm_head.bias" : "lm_head.decoder.bias", config_.vocabulary);
    builder_.logits(last, parts_.matrix(kHead, config_.vocabulary, 2 * config_.width), bias);
  }

  void classify(uint32_t first) {
    graph_.model.task = schema::Task::Classify;
    const uint32_t dense = parts_.linear("classifier.dense", first, "classifier.dense",
                                         2 * config_.width, config_.width);
    const uint32_t active = builder_.activate("classifier.active", dense, schema::Activation::Tanh);
    const uint32_t classes = stored_rows(checkpoint_, "classifier.out_proj.weight");
    const uint32_t bias = parts_.vector("classifier.out_proj.bias", classes);
    builder_.logits(active, parts_.matrix("classifier.out_proj.weight", classes, config_.width),
                    bias);
    labels_ = checkpoint_.labels(classes);
  }

  void describe() {
    std::vector<std::pair<std::string, uint32_t>> sizes = {
        {"attention_head_size", config_.head_width},
        {"feed_forward_size", config_.inner},
        {"hidden_size", config_.width},
        {"max_segment", max_segment_},
        {"num_attention_heads", config_.heads},
        {"num_hidden_layers", static_cast<uint32_t>(config_.hashed.size())},
        {"vocabulary", config_.vocabulary}};
    if (goes_on()) sizes.emplace_back("context", context_);
    write_metadata(checkpoint_, graph_, sizes);
    graph_.model.metadata->labels = labels_;
    read_generation(checkpoint_, config_.vocabulary, graph_);
    if (config_.has_hashes() && config_.seed < 0) {
      graph_.warnings.push_back(
          "hash_seed is missing: the original draws new rotations for every text, these are drawn "
          "once, with the seed 0");
    }
  }

  const Checkpoint& checkpoint_;
  const Reformer& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  std::string prefix_;
  uint32_t max_segment_ = 0, tokens_ = 0, mask_ = GraphBuilder::kNone;
  /// Tokens whose keys, values and buckets are kept; 0: none.
  uint32_t context_ = 0;
  uint32_t drawn_ = GraphBuilder::kNone;
  uint32_t rows_symbol_ = 0, buckets_symbol_ = 0, order_symbol_ = 0, bucket_rows_ = 0;
  std::vector<std::string> labels_;
};

Chunks read_chunks(const Checkpoint& checkpoint, const std::string& kind) {
  Chunks chunks;
  chunks.length = checkpoint.size(kind + "_attn_chunk_length", 1, kMaxSize, 64);
  chunks.before = checkpoint.size(kind + "_num_chunks_before", 0, 1024, 1);
  chunks.after = checkpoint.size(kind + "_num_chunks_after", 0, 1024, 0);
  return chunks;
}

/// One number, or factors.
std::vector<uint32_t> read_buckets(const Checkpoint& checkpoint) {
  if (!checkpoint.has_value("num_buckets")) {
    checkpoint.refuse(
        "num_buckets is missing, from which the original chooses it by its first "
        "text: "
        "expected a number, or a list of factors");
    return {2};
  }
  const std::vector<uint32_t> buckets = checkpoint.size_or_sizes("num_buckets", 2, kMaxSize);
  uint64_t all = 1;
  for (const uint32_t factor : buckets) {
    all = std::min<uint64_t>(all * factor, UINT32_MAX);
    if (factor % 2 != 0) {
      checkpoint.refuse("num_buckets has " + std::to_string(factor) + ", expected even numbers");
    }
  }
  if (buckets.empty() || buckets.size() > kMaxBucketFactors || all > (1u << 22)) {
    checkpoint.refuse("num_buckets has " + std::to_string(buckets.size()) +
                      " factors, expected 1 to " + std::to_string(kMaxBucketFactors) +
                      " whose product is at most 4194304");
    return {2};
  }
  return buckets;
}

void read_layers(const Checkpoint& checkpoint, Reformer& config) {
  std::vector<std::string> kinds = checkpoint.texts("attn_layers");
  if (kinds.empty() || kinds.size() > kMaxLayers) {
    checkpoint.refuse("attn_layers has " + std::to_string(kinds.size()) +
                      " layers, expected 1 to " + std::to_string(kMaxLayers));
    kinds = {"local"};
  }
  for (const std::string& kind : kinds) {
    if (kind != "local" && kind != "lsh") {
      checkpoint.refuse("attn_layers has \"" + kind + "\", expected local or lsh");
    }
    config.hashed.push_back(kind == "lsh");
  }
  const auto count = static_cast<uint32_t>(kinds.size());
  if (checkpoint.size("num_hidden_layers", 1, kMaxLayers, count) != count) {
    checkpoint.refuse("num_hidden_layers is not the number of attn_layers, " +
                      std::to_string(count));
  }
  const auto hashed = std::count(config.hashed.begin(), config.hashed.end(), true);
  if (static_cast<size_t>(hashed) + 2 > kMaxInputs) {
    checkpoint.refuse("attn_layers has " + std::to_string(hashed) +
                      " layers of kind lsh, expected at most " + std::to_string(kMaxInputs - 2));
    config.hashed.assign(count, false);
  }
  config.local = read_chunks(checkpoint, "local");
  config.lsh = read_chunks(checkpoint, "lsh");
  config.rounds = checkpoint.size("num_hashes", 1, 1024, 1);
  config.seed = -1;
  if (checkpoint.has_value("hash_seed")) config.seed = checkpoint.size("hash_seed", 0, UINT32_MAX);
  const bool any_local = static_cast<size_t>(hashed) != kinds.size();
  if (hashed != 0) {
    config.buckets = read_buckets(checkpoint);
  } else {
    checkpoint.ignore_keys({"num_buckets"});
  }
  config.pad_multiple = config.pad_above = hashed != 0 ? config.lsh.length : config.local.length;
  if (hashed != 0 && any_local) {
    const uint64_t multiple = std::lcm(uint64_t{config.lsh.length}, uint64_t{config.local.length});
    if (multiple > kMaxSize) {
      checkpoint.refuse("lsh_attn_chunk_length " + std::to_string(config.lsh.length) +
                        " and local_attn_chunk_length " + std::to_string(config.local.length) +
                        " have no common multiple up to " + std::to_string(kMaxSize));
    }
    config.pad_multiple = static_cast<uint32_t>(std::min<uint64_t>(multiple, kMaxSize));
    config.pad_above = std::min(config.lsh.length, config.local.length);
  }
}

void read_positions(const Checkpoint& checkpoint, Reformer& config) {
  config.positions = checkpoint.size("max_position_embeddings", 1, kMaxSize, 4096);
  config.axes = checkpoint.sizes("axial_pos_shape", 1, kMaxSize);
  config.axis_widths = checkpoint.sizes("axial_pos_embds_dim", 1, kMaxSize);
  if (!checkpoint.flag("axial_pos_embds", true)) {
    config.axes.clear();
    config.axis_widths.clear();
    return;
  }
  const uint64_t width =
      std::accumulate(config.axis_widths.begin(), config.axis_widths.end(), uint64_t{0});
  uint64_t positions = 1;
  for (const uint32_t axis : config.axes)
    positions = std::min<uint64_t>(positions * axis, 1u << 31);
  if (config.axes.empty() || config.axes.size() != config.axis_widths.size() ||
      config.axes.size() > 8 || width != config.width || positions > kMaxSize) {
    checkpoint.refuse("axial_pos_shape has " + std::to_string(config.axes.size()) +
                      " factors and axial_pos_embds_dim " +
                      std::to_string(config.axis_widths.size()) + " with the sum " +
                      std::to_string(width) + ", expected as many, and hidden_size, " +
                      std::to_string(config.width));
    config.axes = {1};
    config.axis_widths = {config.width};
    positions = 1;
  }
  config.positions = static_cast<uint32_t>(positions);
}

Reformer read(const Checkpoint& checkpoint) {
  Reformer config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize, 320);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize, 256);
  config.heads = checkpoint.size("num_attention_heads", 1, kMaxSize, 12);
  config.head_width = checkpoint.size("attention_head_size", 1, kMaxSize / config.heads, 64);
  config.inner = checkpoint.size("feed_forward_size", 1, kMaxSize, 512);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-12));
  config.activation = read_activation(checkpoint, "hidden_act", "relu");
  config.causal = checkpoint.flag("is_decoder", false);
  config.pad_token = checkpoint.size("pad_token_id", 0, config.vocabulary - 1, 0);
  read_layers(checkpoint, config);
  read_positions(checkpoint, config);
  for (const char* absent : {"tie_word_embeddings", "add_cross_attention", "is_encoder_decoder",
                             "sinusoidal_pos_embds"}) {
    require_flag(checkpoint, absent, false);
  }
  // How much is computed at a time, how tables are drawn, and keys of old that nothing reads.
  checkpoint.ignore_keys({"chunk_size_feed_forward", "chunk_size_lm_head", "axial_norm_std",
                          "lsh_attention_probs_dropout_prob", "local_attention_probs_dropout_prob",
                          "intermediate_size", "num_chunks_after", "num_chunks_before",
                          "output_past", "seed"});
  ignore_common_keys(checkpoint);
  if (checkpoint.has_tensor("qa_outputs.weight")) {
    throw InputError("tensor qa_outputs.weight: Reformer's question answering is not supported");
  }
  return config;
}

}  // namespace

void import_reformer(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Reformer config = read(checkpoint);
  Builder(checkpoint, options, config, graph);
}

}  // namespace oxbow::convert
