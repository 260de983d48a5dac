// labml.ai's Hourglass (labml_nn/transformers/hour_glass, Nawrot 2021): causal layers around a shorter text, whose rows
// are means of rows and are repeated afterwards. The last mean of a text depends on where the text ends, so a text is
// read as a whole.

#include <algorithm>

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_layer.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Tokens of a text, unless the user says otherwise.
constexpr uint32_t kDefaultLength = 512;

class Hourglass {
 public:
  Hourglass(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph)
      : builder_(graph), parts_(checkpoint, builder_) {
    vocabulary_ = read_labml_vocabulary(checkpoint);
    width_ = checkpoint.size("d_model", 1, kMaxSize);
    heads_ = read_heads(checkpoint, "d_model", width_, "n_heads");
    inner_ = checkpoint.size("d_ff", 1, kMaxSize);
    factors_ = checkpoint.sizes("shortening_factors", 1, 4096);
    if (factors_.empty()) {
      checkpoint.refuse("shortening_factors is empty, expected at least one number");
      factors_ = {1};
    }
    epsilon_ = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
    length_ = options.max_segment != 0 ? options.max_segment : kDefaultLength;
    ignore_common_keys(checkpoint);

    GraphBuilder::Entry entry;
    entry.vocabulary = vocabulary_;
    entry.max_segment = length_;
    entry.starts = true;
    builder_.begin_entry(entry);
    uint32_t x = builder_.embedding("embedded", builder_.tokens(),
                                    parts_.matrix("src_embed.weight", vocabulary_, width_));
    x = hourglass("transformer.", 0, length_, x);
    builder_.logits(builder_.take_rows("tail", x),
                    parts_.matrix("generator.weight", vocabulary_, width_),
                    parts_.vector("generator.bias", vocabulary_));
    graph.model.task = schema::Task::Encode;
    write_metadata(checkpoint, graph,
                   {{"d_ff", inner_},
                    {"d_model", width_},
                    {"heads", heads_.count},
                    {"max_length", length_},
                    {"vocabulary", vocabulary_}});
    graph.model.metadata->time_major = true;
  }

 private:
  /// The glass from level `level` on; its text has at most `rows` rows.
  uint32_t hourglass(const std::string& prefix, uint32_t level, uint32_t rows, uint32_t x) {
    const uint32_t factor = factors_[level];
    const std::string name = "level" + std::to_string(level);
    x = layer(prefix + "pre.", name + ".pre", x);
    GraphBuilder::PoolRows pool;
    pool.x = {x};
    pool.group = factor;
    pool.front = factor - 1;
    pool.mean = true;
    const uint32_t fewer = (rows + factor - 1) / factor;
    uint32_t y = builder_.pool_rows(name + ".short", pool, builder_.symbol(name + ".rows", fewer));
    y = level + 1 < factors_.size() ? hourglass(prefix + "hour_glass.", level + 1, fewer, y)
                                    : layer(prefix + "shortened.", name + ".shortened", y);
    x = builder_.add(name + ".sum", x, builder_.repeat_rows(name + ".long", y, x, factor, 0));
    return layer(prefix + "post.", name + ".post", x);
  }

  uint32_t layer(const std::string& prefix, const std::string& name, uint32_t x) {
    const uint32_t z =
        parts_.layer_norm(name + ".normed", x, prefix + "norm_self_attn", width_, epsilon_);
    const auto project = [&](const char* to, const char* which) {
      return parts_.linear(name + to, z, prefix + "self_attn." + which + ".linear", width_, width_);
    };
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = heads_.count;
    attention.scale = attention_scale(heads_.width);
    const uint32_t q = project(".q", "query");
    attention.sources = {{project(".k", "key"), project(".v", "value")}};
    x = builder_.add(
        name + ".attended", x,
        parts_.linear(name + ".o", builder_.attention(name + ".attention", q, attention),
                      prefix + "self_attn.output", width_, width_));
    const uint32_t y =
        parts_.layer_norm(name + ".ff.normed", x, prefix + "norm_ff", width_, epsilon_);
    const uint32_t wide = builder_.activate(
        name + ".ff.active",
        parts_.linear(name + ".ff.wide", y, prefix + "feed_forward.layer1", width_, inner_),
        schema::Activation::Relu);
    return builder_.add(
        name + ".out", x,
        parts_.linear(name + ".ff.out", wide, prefix + "feed_forward.layer2", inner_, width_));
  }

  GraphBuilder builder_;
  Parts parts_;
  uint32_t vocabulary_ = 0, width_ = 0, inner_ = 0, length_ = 0;
  AttentionHeads heads_;
  std::vector<uint32_t> factors_;
  float epsilon_ = 0;
};

}  // namespace

void import_labml_hourglass(const Checkpoint& checkpoint, const ImportOptions& options,
                            Graph& graph) {
  Hourglass(checkpoint, options, graph);
}

}  // namespace oxbow::convert
