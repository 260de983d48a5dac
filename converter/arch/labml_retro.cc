// labml.ai's RETRO (labml_nn/transformers/retro, Borgeaud 2022): a causal decoder some of whose layers look at neighbours
// of chunks of the text, which the app looks up and hands in. The last token of a chunk is the first to see that
// chunk's neighbours.
//
//   retrieved_ids          tokens of all neighbours: [chunks, neighbours, tokens of one], one behind the other
//   retrieved_ids.shape    these three numbers
//
// Neighbours are encoded once, beside the first layer that looks at them, each looking at its chunk. A text is read as a
// whole; tokens whose chunk has no neighbours yet do without.

#include <algorithm>
#include <map>

#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Tokens of a text, unless the user says otherwise, and tokens of all neighbours of a chunk.
constexpr uint32_t kDefaultLength = 512;
uint32_t most_retrieved(uint32_t chunk) { return std::max(4 * chunk, 128u); }

/// Of the decoder or of the neighbours' encoder.
struct StackShape {
  uint32_t layers, heads, head_width, inner;
  std::vector<uint32_t> cross_layers;

  uint32_t attention_width() const { return heads * head_width; }
  bool crosses(uint32_t layer) const {
    return std::find(cross_layers.begin(), cross_layers.end(), layer) != cross_layers.end();
  }
};

/// Keys of an object in the configuration have its name in front. What it does not say is as in `outer`.
StackShape read_stack(const Checkpoint& checkpoint, const std::string& object,
                      const StackShape* outer) {
  const auto size = [&](const char* key, uint32_t max, uint32_t fallback) {
    return outer == nullptr ? checkpoint.size(object + key, 1, max)
                            : checkpoint.size(object + key, 1, max, fallback);
  };
  StackShape stack;
  stack.layers = checkpoint.size(object + "n_layers", 1, kMaxLayers);
  stack.heads = size("n_heads", 4096, outer ? outer->heads : 0);
  stack.head_width = size("d_k", 4096, outer ? outer->head_width : 0);
  stack.inner = size("d_ff", kMaxSize, outer ? outer->inner : 0);
  stack.cross_layers = checkpoint.sizes(object + "ca_layers", 0, stack.layers - 1);
  std::sort(stack.cross_layers.begin(), stack.cross_layers.end());
  if (std::adjacent_find(stack.cross_layers.begin(), stack.cross_layers.end()) !=
      stack.cross_layers.end()) {
    checkpoint.refuse(object + "ca_layers names a layer twice");
  }
  if (stack.head_width % 2 != 0) {
    checkpoint.refuse(object + "d_k is " + std::to_string(stack.head_width) +
                      ", expected an even number, whose halves are turned");
    stack.head_width = 2;
  }
  return stack;
}

class Retro {
 public:
  Retro(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph)
      : checkpoint_(checkpoint), builder_(graph), parts_(checkpoint, builder_) {
    const bool named = checkpoint.has_key("n_vocab");
    vocabulary_ = checkpoint.size(named ? "n_vocab" : "vocab_size", 1, kMaxSize);
    if (checkpoint.size("vocab_size", 1, kMaxSize, vocabulary_) != vocabulary_) {
      checkpoint.refuse("vocab_size is not n_vocab, " + std::to_string(vocabulary_));
    }
    width_ = checkpoint.size("d_model", 1, kMaxSize);
    chunk_ = checkpoint.size("chunk_len", 1, 1u << 16);
    decoder_ = read_stack(checkpoint, "", nullptr);
    if (decoder_.cross_layers.empty()) {
      checkpoint.refuse("ca_layers is empty, expected at least one layer");
      decoder_.cross_layers = {0};
    }
    checkpoint.require_object("encoder");
    encoder_ = read_stack(checkpoint, "encoder.", &decoder_);
    if (checkpoint.size("encoder.chunk_len", 1, 1u << 16, chunk_) != chunk_ ||
        checkpoint.size("encoder.d_model", 1, kMaxSize, width_) != width_) {
      checkpoint.refuse("the encoder's chunk_len and d_model must be the decoder's");
    }
    epsilon_ = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
    length_ = options.max_segment != 0 ? options.max_segment : kDefaultLength;
    ignore_common_keys(checkpoint);
    decode();
    graph.model.task = schema::Task::Encode;
    write_metadata(checkpoint, graph,
                   {{"chunk_len", chunk_},
                    {"d_ff", decoder_.inner},
                    {"d_model", width_},
                    {"heads", decoder_.heads},
                    {"layers", decoder_.layers},
                    {"max_length", length_},
                    {"max_retrieved", most_retrieved(chunk_)},
                    {"vocabulary", vocabulary_}});
  }

 private:
  /// The tokens of a text and of its neighbours go through the same layers.
  struct Rows {
    std::string name;
    /// In front of the tensors' names.
    std::string prefix;
    const StackShape& stack;
    /// The ids, which number the rows.
    uint32_t ids;
    bool causal;
  };

  void decode() {
    GraphBuilder::Entry entry;
    entry.vocabulary = vocabulary_;
    entry.max_segment = length_;
    entry.starts = true;
    builder_.begin_entry(entry);
    const Rows text = {"", "", decoder_, builder_.tokens(), true};
    const uint32_t chunks = std::max(1u, length_ / chunk_);
    retrieved_ = builder_.input("retrieved_ids", vocabulary_, 0,
                                builder_.symbol("retrieved", chunks * most_retrieved(chunk_)));
    shape_ = builder_.input("retrieved_ids.shape", INT32_MAX, 0,
                            builder_.symbol("retrieved_dimensions", 3));
    chunk_rows_ = builder_.symbol("chunk_rows", chunks * chunk_);
    uint32_t h = embed("embedded", text.ids);
    uint32_t e = GraphBuilder::kNone, crossed = 0;
    for (uint32_t i = 0; i < decoder_.layers; ++i) {
      h = self_attention(text, i, h);
      if (decoder_.crosses(i)) {
        if (crossed == 0) e = norm("retrieved.normed", encode(h), "norm_e");
        h = look_at_neighbours(crossed++, h, e);
      }
      h = feed_forward(text, i, h);
    }
    builder_.logits(builder_.take_rows("tail", h),
                    parts_.matrix("read.weight", vocabulary_, width_),
                    parts_.vector("read.bias", vocabulary_));
  }

  /// Neighbours, each of which sees itself and, in some layers, the chunk of the text that it belongs to.
  uint32_t encode(uint32_t h) {
    const Rows rows = {"retrieved.", "encoder.", encoder_, retrieved_, false};
    const uint32_t text = norm("retrieved.text", h, "encoder.norm_h");
    uint32_t e = embed("retrieved.embedded", retrieved_);
    uint32_t crossed = 0;
    for (uint32_t i = 0; i < encoder_.layers; ++i) {
      e = self_attention(rows, i, e);
      if (encoder_.crosses(i)) e = look_at_chunk(crossed++, e, text);
      e = feed_forward(rows, i, e);
    }
    return e;
  }

  uint32_t look_at_chunk(uint32_t index, uint32_t e, uint32_t text) {
    const std::string name = "retrieved.cross" + std::to_string(index);
    const std::string prefix = "encoder.ca." + std::to_string(index) + ".";
    GraphBuilder::Attention attention = cross_attention(name, prefix, encoder_, text);
    attention.groups =
        GraphBuilder::Groups{.shape = shape_, .query_dimensions = 2, .key_length = chunk_};
    const uint32_t z = norm(name + ".normed", e, prefix + "norm");
    return builder_.add(name + ".sum", e, attend(name, prefix, encoder_, z, attention));
  }

  /// Token chunk_ - 1 and on, chunk by chunk; those before see nothing yet.
  uint32_t look_at_neighbours(uint32_t index, uint32_t h, uint32_t e) {
    const std::string name = "cross" + std::to_string(index);
    const std::string prefix = "cca." + std::to_string(index) + ".";
    const auto before = static_cast<int32_t>(chunk_ - 1);
    GraphBuilder::Attention attention = cross_attention(name, prefix, decoder_, e);
    attention.groups =
        GraphBuilder::Groups{.shape = shape_, .query_length = chunk_, .key_dimensions = 2};
    const uint32_t z =
        builder_.shaped_rows(name + ".rows", norm(name + ".normed", h, prefix + "norm"), before,
                             shape_, chunk_, chunk_rows_);
    const uint32_t y = attend(name, prefix, decoder_, z, attention);
    return builder_.add(name + ".sum", h, builder_.repeat_rows(name + ".back", y, h, 1, -before));
  }

  /// With keys of other rows.
  GraphBuilder::Attention cross_attention(const std::string& name, const std::string& prefix,
                                          const StackShape& stack, uint32_t keys) {
    GraphBuilder::Attention attention = heads_of(stack);
    attention.own = false;
    attention.sources = {{project(name + ".k", keys, prefix + "key", stack),
                          project(name + ".v", keys, prefix + "value", stack)}};
    return attention;
  }

  uint32_t attend(const std::string& name, const std::string& prefix, const StackShape& stack,
                  uint32_t z, const GraphBuilder::Attention& attention) {
    const uint32_t q = project(name + ".q", z, prefix + "query", stack);
    return parts_.linear(name + ".o", builder_.attention(name + ".attended", q, attention),
                         prefix + "output", stack.attention_width(), width_);
  }

  static GraphBuilder::Attention heads_of(const StackShape& stack) {
    GraphBuilder::Attention attention;
    attention.heads = attention.kv_heads = stack.heads;
    attention.scale = attention_scale(stack.head_width);
    attention.pattern.kind = schema::PatternKind::Full;
    return attention;
  }

  uint32_t self_attention(const Rows& rows, uint32_t layer, uint32_t x) {
    const std::string name = rows.name + "layer" + std::to_string(layer);
    const std::string prefix = rows.prefix + "attn." + std::to_string(layer) + ".";
    const StackShape& stack = rows.stack;
    const uint32_t z = norm(name + ".normed", x, prefix + "norm");
    const uint32_t angles = angles_of(rows, name, prefix + "rotary_pe.theta");
    const auto turned = [&](const char* to, const char* which) {
      return builder_.rope(name + to + ".turned", project(name + to, z, prefix + which, stack),
                           angles, stack.heads, false);
    };
    GraphBuilder::Attention attention = heads_of(stack);
    if (rows.causal) {
      attention.pattern.kind = schema::PatternKind::Causal;
    } else {
      // Only distances count in turned products, so that rows may be numbered through all neighbours.
      attention.groups =
          GraphBuilder::Groups{.shape = shape_, .query_dimensions = 1, .key_dimensions = 1};
    }
    const uint32_t q = turned(".q", "query");
    attention.sources = {{turned(".k", "key"), project(name + ".v", z, prefix + "value", stack)}};
    return builder_.add(
        name + ".attended", x,
        parts_.linear(name + ".o", builder_.attention(name + ".attention", q, attention),
                      prefix + "output", stack.attention_width(), width_));
  }

  uint32_t feed_forward(const Rows& rows, uint32_t layer, uint32_t x) {
    const std::string name = rows.name + "layer" + std::to_string(layer) + ".ff";
    const std::string prefix = rows.prefix + "ffw." + std::to_string(layer) + ".";
    const uint32_t wide =
        builder_.activate(name + ".active",
                          parts_.linear(name + ".wide", norm(name + ".normed", x, prefix + "norm"),
                                        prefix + "lin1", width_, rows.stack.inner),
                          schema::Activation::Relu);
    return builder_.add(
        name + ".out", x,
        parts_.linear(name + ".narrow", wide, prefix + "lin2", rows.stack.inner, width_));
  }

  /// Layers of a stack normally have the same frequencies, and then the same angles.
  uint32_t angles_of(const Rows& rows, const std::string& name, const std::string& theta) {
    const uint32_t pairs = rows.stack.head_width / 2;
    const std::vector<float> frequencies = checkpoint_.vector(theta, pairs);
    const auto [found, is_new] = angles_.try_emplace({rows.ids, frequencies}, 0);
    if (is_new) {
      found->second = builder_.rope_angles(
          name + ".angles", builder_.weight(theta, 1, pairs, frequencies), 0, rows.ids);
    }
    return found->second;
  }

  uint32_t embed(const std::string& name, uint32_t ids) {
    return builder_.embedding(name, ids, parts_.matrix("emb.weight", vocabulary_, width_));
  }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& prefix) {
    return parts_.layer_norm(name, x, prefix, width_, epsilon_);
  }
  uint32_t project(const std::string& name, uint32_t x, const std::string& prefix,
                   const StackShape& stack) {
    return parts_.linear(name, x, prefix, width_, stack.attention_width());
  }

  const Checkpoint& checkpoint_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t vocabulary_ = 0, width_ = 0, chunk_ = 0, length_ = 0;
  StackShape decoder_, encoder_;
  float epsilon_ = 0;
  uint32_t retrieved_ = GraphBuilder::kNone, shape_ = GraphBuilder::kNone;
  uint32_t chunk_rows_ = GraphBuilder::kNone;
  std::map<std::pair<uint32_t, std::vector<float>>, uint32_t> angles_;
};

}  // namespace

void import_labml_retro(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Retro(checkpoint, options, graph);
}

}  // namespace oxbow::convert
