#pragma once

// The graph while it is being made: the schema's own object types, plus the float values of
// weights (weight.h). Importers fill it with GraphBuilder; passes rewrite it; the writer turns it into a file.
//
// Until the quantise pass every tensor but ids and masks is F32 and row-major; until the plan pass
// no tensor has an offset.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/weight.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// An activation worth looking at when results differ: what --debug-outputs keeps.
struct DebugOutput {
  size_t entry;
  uint32_t tensor;
  /// What reference implementations call it.
  std::string name;
};

struct Graph {
  schema::ModelT model;
  /// Float values of each weight, by tensor index.
  std::map<uint32_t, Weight> weights;
  /// Of them those that have three values by nature: the model was trained with such weights, and with int8 rows.
  std::set<uint32_t> ternary;
  /// Names of weights that stay float whatever the others become: few bits would change too much.
  std::set<std::string> precise;
  /// Where large ones are put aside; null: they stay in memory.
  std::shared_ptr<FloatFile> file;
  std::vector<DebugOutput> debug_outputs;
  /// What the user should know of, one line each.
  std::vector<std::string> warnings;
  /// Whether the importer did what ImportOptions says of keys and values that are kept.
  bool keeps_context = false;

  /// The last entry point: what streams tokens, or the only one.
  schema::EntryPointT& main_entry() { return *model.entry_points.back(); }
  const schema::EntryPointT& main_entry() const { return *model.entry_points.back(); }
  /// Not rows of floats.
  bool takes_tokens() const { return tensor(main_entry().tokens).type == schema::DataType::I32; }
  schema::TensorT& tensor(uint32_t index) { return *model.tensors.at(index); }
  const schema::TensorT& tensor(uint32_t index) const { return *model.tensors.at(index); }
};

/// What the user asked of an importer. 0: what the importer finds best for this checkpoint.
struct ImportOptions {
  /// Most tokens of one run.
  uint32_t max_segment = 0;
  /// Keys and values that a model without a memory of its own keeps.
  uint32_t context = 0;
  /// True: the oldest of them leave, so that the stream is endless; false: it ends when they are full.
  bool ring = false;
  /// With `ring`: the first tokens of a stream that never leave.
  uint32_t sinks = 0;
};

/// See schema::Ring.
struct RingOptions {
  uint32_t pinned = 0;
  uint32_t initial_rows = 0;
  bool shared = false;
};

/// Steps and tensors in the words of model descriptions. All methods that make a tensor return its
/// index. The steps go to the entry point begun last.
class GraphBuilder {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// The graph must outlive the builder.
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  struct Entry {
    std::string name = "step";
    /// The main input: its name, and how many ids there are, or the width of its rows of floats.
    std::string tokens = "input_ids";
    uint32_t vocabulary = 0;
    uint32_t float_width = 0;
    /// Most tokens of one run.
    uint32_t max_segment = 0;
    bool starts = false;
    uint32_t capacity = 0;
    bool any_pieces = false;
  };
  void begin_entry(const Entry& entry);

  /// The main input of this entry point.
  uint32_t tokens() const { return tokens_; }
  /// A further input of ids below `limit`, with as many rows as the main one, or with its own number of rows, which
  /// `rows_symbol` then counts.
  uint32_t input(const std::string& name, uint32_t limit, uint32_t default_value,
                 uint32_t rows_symbol = kNone);
  /// The same for rows of floats. Those that need not be given are zeros, or, with a number of rows of their own, none.
  uint32_t float_input(const std::string& name, uint32_t width, uint32_t rows_symbol = kNone,
                       bool required = true);

  uint32_t symbol(const std::string& name, uint32_t max);
  uint32_t ring(const std::string& name, uint32_t capacity, const RingOptions& options = {});
  uint32_t weight(const std::string& name, uint32_t rows, uint32_t width,
                  std::vector<float> values);
  /// A state whose rows move in `ring`. `initial` is a weight of one row, or kNone for zeros.
  uint32_t ring_state(const std::string& name, uint32_t ring, uint32_t width,
                      uint32_t initial = kNone);

  /// A state that steps read and write whole, such as a recurrence's. `initial` is a weight with its rows
  /// or with one row for all, or kNone for zeros.
  uint32_t state(const std::string& name, uint32_t rows, uint32_t width, uint32_t initial = kNone);
  /// The same, with one value everywhere.
  uint32_t constant_state(const std::string& name, uint32_t rows, uint32_t width, float value);

  uint32_t embedding(const std::string& name, uint32_t ids, uint32_t table, float scale = 1.0f);
  /// Rows of zeros for ids outside of [first, first + rows of the table).
  uint32_t partial_embedding(const std::string& name, uint32_t ids, uint32_t table, uint32_t first,
                             float scale);
  /// Each of `groups` equal parts of a row by itself. `weight` and `bias` are as wide as a row, or as a part
  /// if all share them, or kNone.
  uint32_t layer_norm(const std::string& name, uint32_t x, uint32_t weight, uint32_t bias,
                      float epsilon, uint32_t groups = 1);
  /// Each row by the unbiased standard deviation + epsilon.
  uint32_t deviation_norm(const std::string& name, uint32_t x, uint32_t weight, uint32_t bias,
                          float epsilon);
  uint32_t rms_norm(const std::string& name, uint32_t x, uint32_t weight, float epsilon,
                    uint32_t groups = 1);
  /// `bias` may be kNone.
  uint32_t linear(const std::string& name, uint32_t x, uint32_t weight, uint32_t bias);
  /// `limit` is that of Clamp and SoftCap.
  uint32_t activate(const std::string& name, uint32_t x, schema::Activation activation,
                    float limit = 0.0f);
  /// Here and in multiply `b` may be a weight of one row, and its width a divisor of that of `a`.
  uint32_t add(const std::string& name, uint32_t a, uint32_t b);
  uint32_t multiply(const std::string& name, uint32_t a, uint32_t b);

  struct Source {
    uint32_t k, v;
  };
  struct Relative {
    uint32_t table, bias, query_bias;
  };
  struct Segments {
    uint32_t types, table, bias;
  };
  /// See schema::TermKind. `spans` is a weight of one row.
  struct AdaptiveSpan {
    uint32_t spans;
    float ramp;
    uint32_t first;
  };
  /// See schema::TermKind. `shape` is kNone when both lengths are told.
  struct Groups {
    uint32_t shape = kNone;
    uint32_t query_length = 0, query_dimensions = 0;
    uint32_t key_length = 0, key_dimensions = 0;
  };
  /// See schema::TermKind. `bias` is a weight.
  struct Sides {
    uint32_t bias;
    uint32_t length;
    uint32_t zero;
  };
  /// See schema::AttentionOptions. Tensors that are not used are kNone.
  struct Attention {
    uint32_t heads = 0;
    uint32_t kv_heads = 0;
    float scale = 1.0f;
    /// From the oldest to, if `own`, this run's own rows. Values may have a width of their own.
    std::vector<Source> sources;
    bool own = true;
    schema::PatternT pattern;
    std::optional<Relative> relative;
    uint32_t relative_zero = 0;
    uint32_t distance_bias = kNone;
    uint32_t alibi = kNone;
    std::optional<Segments> segments;
    uint32_t key_mask = kNone;
    bool mask_queries = false;
    bool mask_keeps_own = false;
    uint32_t globals = kNone;
    uint32_t pinned_query = kNone;
    /// States in rings, whose missing rows are added to distances.
    std::vector<uint32_t> rooms;
    bool relative_keys = false;
    std::optional<AdaptiveSpan> adaptive_span;
    std::optional<Groups> groups;
    std::optional<Sides> sides;
    /// Of the pattern ListedBlocks; of Circle.
    uint32_t blocks = kNone;
    uint32_t order = kNone;
    std::optional<float> own_score;
  };
  /// `log_sums`, if it is not null, becomes the tensor of the log-sum-exp, [T, heads].
  uint32_t attention(const std::string& name, uint32_t q, const Attention& attention,
                     uint32_t* log_sums = nullptr);
  /// What attentions gave, with their log-sum-exps.
  struct Mixed {
    uint32_t x, log_sums;
  };
  uint32_t mix_attention(const std::string& name, const std::vector<Mixed>& parts);

  /// Sines and cosines of this run's positions; `frequencies` is a weight of one row.
  /// `like` is another input, whose rows are numbered instead.
  uint32_t rope_angles(const std::string& name, uint32_t frequencies, uint32_t last = 0,
                       uint32_t like = kNone);
  uint32_t rope(const std::string& name, uint32_t x, uint32_t angles, uint32_t heads,
                bool adjacent);
  /// Ids for an embedding of positions with `limit` rows.
  uint32_t positions(const std::string& name, uint32_t limit,
                     const schema::PositionsOptionsT& options, uint32_t tokens = kNone);
  uint32_t token_mask(const std::string& name, uint32_t pad_token);
  uint32_t mask_rows(const std::string& name, uint32_t x, uint32_t mask);
  /// `rows_symbol` counts the rows whose mask is not 0.
  uint32_t select_rows(const std::string& name, uint32_t x, uint32_t mask, uint32_t rows_symbol);
  uint32_t merge_rows(const std::string& name, uint32_t x, uint32_t rows, uint32_t mask);
  /// Ids with others behind them; `rows_symbol` counts all.
  uint32_t pad_rows(const std::string& name, uint32_t x, uint32_t rows_symbol,
                    const schema::PadRowsOptionsT& options);
  /// `mask` may be kNone; `rows_symbol` counts the buckets of all heads, rounds and rows.
  uint32_t hash_buckets(const std::string& name, uint32_t x, uint32_t rotations, uint32_t mask,
                        uint32_t rows_symbol, const schema::HashBucketsOptionsT& options);
  /// `given` are taken instead if there are any; `rows_symbol` counts what is sorted.
  uint32_t sort_rows(const std::string& name, uint32_t keys, uint32_t given, uint32_t rows_symbol,
                     uint32_t lists);
  uint32_t slice_columns(const std::string& name, uint32_t x, uint32_t first, uint32_t width);
  uint32_t concat_columns(const std::string& name, const std::vector<uint32_t>& parts);
  /// `memory` is kNone, or a ring state of options.left rows; `bias` may be kNone.
  uint32_t convolution(const std::string& name, uint32_t x, uint32_t kernel, uint32_t memory,
                       schema::ConvolutionOptionsT options, uint32_t bias = kNone);
  /// From `a` to `b` by `mix`, which has the rows of both or one row for all.
  uint32_t lerp(const std::string& name, uint32_t a, uint32_t b, uint32_t mix);
  /// See schema::ScanRule. All outputs: `name`, then `name`.1 and so on.
  std::vector<uint32_t> scan(const std::string& name, const schema::ScanOptionsT& options,
                             std::vector<uint32_t> inputs, const std::vector<uint32_t>& states);
  uint32_t gru_gate(const std::string& name, uint32_t input_gates, uint32_t hidden_gates,
                    uint32_t x);

  /// Groups of rows that leave the ring of `memory` when `rows` are pushed next.
  uint32_t ring_evict(const std::string& name, uint32_t rows, uint32_t memory,
                      uint32_t groups_symbol, const schema::RingEvictOptionsT& options);
  /// See schema::MostUsedOptions. The tensors are those of an attention with the term Relative, and what it remembers.
  struct MostUsed {
    uint32_t q = kNone, log_sums = kNone, k = kNone, x = kNone;
    uint32_t key_memory = kNone, memory = kNone;
    Relative relative;
    uint32_t usage = kNone;
  };
  uint32_t most_used(const std::string& name, const MostUsed& from, uint32_t groups_symbol,
                     const schema::MostUsedOptionsT& options);
  /// The plain state becomes a copy of x, which has its shape.
  void assign(uint32_t state, uint32_t x);
  void ring_push(const std::vector<uint32_t>& rows, const std::vector<uint32_t>& states,
                 const schema::RingPushOptionsT& options = {});
  /// Of `group` vectors side by side, or, if `neighbours`, of so many elements.
  uint32_t pool(const std::string& name, uint32_t x, uint32_t group, schema::Pooling pooling,
                bool neighbours = false);

  /// See schema::PoolRowsOptions. Tensors that are not used are kNone.
  struct PoolRows {
    std::vector<uint32_t> x;
    uint32_t group = 0;
    uint32_t front = 0;
    bool mean = false;
    bool joins = false;
    uint32_t factors = kNone;
    uint32_t mask = kNone;
    uint32_t shape = kNone;
  };
  /// `rows_symbol` counts the groups; kNone: there is one.
  uint32_t pool_rows(const std::string& name, const PoolRows& from, uint32_t rows_symbol);
  /// As many rows as `like` has: row t is row (t + offset) / group of x, or zeros.
  uint32_t repeat_rows(const std::string& name, uint32_t x, uint32_t like, uint32_t group,
                       int32_t offset);
  /// Rows of x from `offset` on, and zeros behind them: as many as the first number of `shape` times `length`, which
  /// `rows_symbol` counts.
  uint32_t shaped_rows(const std::string& name, uint32_t x, int32_t offset, uint32_t shape,
                       uint32_t length, uint32_t rows_symbol);
  /// The first rows of x, as many as `like` has.
  uint32_t first_rows(const std::string& name, uint32_t x, uint32_t like);

  /// See schema::HaltOptions. Before the first round counts and mix are kNone; x is not used.
  struct Halted {
    uint32_t counts = kNone, mix = kNone, x = kNone;
  };
  /// `rows_symbol` counts the rows of the next x.
  Halted halt(const std::string& name, uint32_t p, uint32_t x, const Halted& before,
              float threshold, uint32_t rows_symbol);

  /// The expert of each row, and its number and probability as floats, [T, 2].
  struct Route {
    uint32_t routes, chosen;
  };
  /// With a capacity, that of rows beyond so many of one expert is 0.
  Route route(const std::string& name, uint32_t scores, uint32_t capacity = 0);
  /// `weight` has the matrices of all experts, each with `width` rows and rows of zeros up to a multiple of 8; `bias` is
  /// [experts, width] or kNone.
  uint32_t routed_linear(const std::string& name, uint32_t x, uint32_t routes, uint32_t weight,
                         uint32_t bias, uint32_t experts, uint32_t width);

  /// See schema::RecurrenceOptions. Tensors that are not used are kNone.
  struct Recurrence {
    uint32_t heads = 0;
    uint32_t key_heads = 0;
    uint32_t q = kNone, k = kNone, v = kNone;
    uint32_t state = kNone;
    uint32_t decay = kNone;
    uint32_t factor = kNone;
    bool delta = false;
    uint32_t a = kNone, b = kNone;
    bool read_before = false;
    schema::Normaliser normaliser = schema::Normaliser::None;
    uint32_t normaliser_state = kNone;
    uint32_t floor = kNone;
    float epsilon = 0.0f;
  };
  /// What is read; kNone without q.
  uint32_t recurrence(const std::string& name, const Recurrence& recurrence);
  /// See schema::RetentionOptions.
  uint32_t retention(const std::string& name, uint32_t q, uint32_t k, uint32_t v, uint32_t decay,
                     const schema::RetentionOptionsT& options);
  uint32_t feature_map(const std::string& name, uint32_t x,
                       const schema::FeatureMapOptionsT& options);
  /// See schema::PatchesOptions.
  uint32_t patches(const std::string& name, uint32_t x, const schema::PatchesOptionsT& options);
  /// Of tensors whose numbers of rows are fixed.
  uint32_t concat_rows(const std::string& name, const std::vector<uint32_t>& parts);
  /// The mean of each `group` rows that follow each other; x has exactly `count` such groups.
  uint32_t mean_rows(const std::string& name, uint32_t x, uint32_t count, uint32_t group);
  uint32_t fourier(const std::string& name, uint32_t x);
  /// See schema::LandmarkInverseOptions. `divisor` becomes that tensor; `sums` may be kNone.
  uint32_t landmark_inverse(const std::string& name, uint32_t q, uint32_t k, uint32_t x,
                            uint32_t sums, schema::LandmarkInverseOptionsT options,
                            uint32_t* divisor);

  /// Offers an activation to --debug-outputs, under its own name or another.
  void debug_output(uint32_t x, const std::string& name = "");

  /// The last rows, those that the caller wants the output of.
  uint32_t take_rows(const std::string& name, uint32_t x);
  /// The first rows, one for each token of the caller.
  uint32_t token_rows(const std::string& name, uint32_t x);
  /// The first row.
  uint32_t first_row(const std::string& name, uint32_t x);

  // What the entry point gives. Each entry point ends with one of them, and perhaps further outputs.

  /// The head of a language model or classifier. Unless 0: its output is soft-capped.
  void logits(uint32_t x, uint32_t weight, uint32_t bias, float soft_cap = 0.0f);
  /// The logarithms of an adaptive softmax; see schema::OpCode::AdaptiveSoftmax.
  void adaptive_logits(uint32_t head, const std::vector<uint32_t>& clusters);
  /// The last rows of x as they are, or, where they do not count tokens, all. The first such output, where there are
  /// no logits, is the one that the caller gives memory for; further ones are read by their names, those that do not count tokens with all their rows.
  void output(const std::string& name, uint32_t x);

 private:
  /// A wrong graph is a mistake in an importer, not in the checkpoint: those were checked before.
  static void require(bool condition, const std::string& what);
  schema::EntryPointT& entry() { return *graph_.model.entry_points.back(); }
  uint32_t tensor(const std::string& name, schema::TensorKind kind, uint32_t rows, uint32_t width);
  void linear_step(uint32_t x, uint32_t weight, uint32_t bias, uint32_t y);
  /// An activation with as many rows as the symbol says, or as x has.
  uint32_t activation(const std::string& name, uint32_t rows_symbol, uint32_t width);
  uint32_t like(const std::string& name, uint32_t x, uint32_t width);
  void require_fit(const std::string& name, uint32_t a, uint32_t b) const;
  /// The same with ids below `limit`.
  uint32_t ids(const std::string& name, uint32_t limit);
  void set_ids(uint32_t tensor, uint32_t limit);
  uint32_t add_input(const std::string& name, uint32_t width, uint32_t rows_symbol);
  void set_output(uint32_t y);
  schema::StepT& step(schema::OpCode op, std::vector<uint32_t> inputs,
                      std::vector<uint32_t> outputs);

  Graph& graph_;
  uint32_t tokens_ = 0;
  uint32_t tokens_symbol_ = 0;
  uint32_t output_symbol_ = 0;
  /// This entry point has its logits.
  bool has_output_ = false;
};

}  // namespace oxbow::convert
