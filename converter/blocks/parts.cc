#include "converter/blocks/parts.h"

#include <algorithm>
#include <cmath>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

const std::map<std::string, schema::Activation>& activations() {
  using schema::Activation;
  static const std::map<std::string, Activation> table = {
      {"relu", Activation::Relu},
      {"relu2", Activation::ReluSquared},
      {"gelu", Activation::Gelu},
      {"gelu_new", Activation::GeluTanh},
      {"gelu_fast", Activation::GeluTanh},
      {"gelu_accurate", Activation::GeluTanh},
      {"gelu_tanh", Activation::GeluTanh},
      {"gelu_pytorch_tanh", Activation::GeluTanh},
      {"quick_gelu", Activation::GeluQuick},
      {"silu", Activation::Silu},
      {"swish", Activation::Silu},
      {"sigmoid", Activation::Sigmoid},
      {"tanh", Activation::Tanh},
      {"linear", Activation::None},
  };
  return table;
}

constexpr const char* kCommonKeys[] = {
    // Python objects and files.
    "_name_or_path",
    "architectures",
    "auto_map",
    "dtype",
    "license",
    "licence",
    "model_type",
    "name",
    "description",
    "source",
    "name_or_path",
    "onnx_export",
    "return_dict",
    "tf_legacy_loss",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_bfloat16",
    "use_cache",
    "output_attentions",
    "output_hidden_states",
    "prefix",
    "finetuning_task",
    "problem_type",
    "task_specific_params",
    "segment_lengths",
    "sep_token_id",
    "cls_token_id",
    // Training.
    "activation_dropout",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "classifier_dropout",
    "dropout",
    "dropout_rate",
    "embd_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "init_std",
    "initializer_factor",
    "initializer_range",
    "layerdrop",
    "resid_pdrop",
    "seed",
    "training",
    "batch_size",
    "chunk_size_feed_forward",
    "emb_pdrop",
    // Generation.
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "pad_token_id",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    // Classes, read where there is a classifier.
    "id2label",
    "label2id",
    "num_labels",
};

}  // namespace

bool is_activation(const std::string& name) { return activations().contains(name); }

schema::Activation read_activation(const Checkpoint& checkpoint, const std::string& key,
                                   const std::string& fallback) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : activations()) names.push_back(name);
  return activations().at(checkpoint.choice(key, fallback, names));
}

void ignore_common_keys(const Checkpoint& checkpoint, const std::string& prefix) {
  for (const char* key : kCommonKeys) checkpoint.ignore_keys({prefix + key});
}

void read_generation(const Checkpoint& checkpoint, uint32_t vocabulary, Graph& graph) {
  // Configurations name ids that a cut vocabulary does not have; those are never met.
  const auto token = [&](const char* key) {
    const int32_t id = checkpoint.token(key, -1);
    return id >= 0 && static_cast<uint32_t>(id) < vocabulary ? id : -1;
  };
  auto generation = std::make_unique<schema::GenerationT>();
  generation->start_token = token("bos_token_id");
  generation->end_token = token("eos_token_id");
  generation->pad_token = token("pad_token_id");
  graph.model.generation = std::move(generation);
}

uint32_t read_labml_vocabulary(const Checkpoint& checkpoint) {
  const bool has_tokens = checkpoint.has_key("n_tokens");
  const uint32_t size = checkpoint.size(has_tokens ? "n_tokens" : "vocab_size", 1, kMaxSize);
  const uint32_t other = checkpoint.size("vocab_size", 1, kMaxSize, size);
  if (other != size) {
    checkpoint.refuse("vocab_size is " + std::to_string(other) + ", expected n_tokens, " +
                      std::to_string(size));
  }
  return size;
}

std::string optional_prefix(const Checkpoint& checkpoint, const std::string& prefix,
                            const std::string& name) {
  return checkpoint.has_tensor(prefix + name) || !checkpoint.has_tensor(name) ? prefix : "";
}

uint32_t read_segment(const Checkpoint& checkpoint, const ImportOptions& options) {
  uint32_t longest = kDefaultSegment;
  for (const uint32_t length : checkpoint.sizes("segment_lengths", 1, kMaxSize)) {
    longest = std::max(longest, length);
  }
  return options.max_segment != 0 ? options.max_segment : longest;
}

void require_multiple(const Checkpoint& checkpoint, const std::string& width_key, uint32_t width,
                      const std::string& parts_key, uint32_t parts) {
  if (parts != 0 && width % parts == 0) return;
  checkpoint.refuse(width_key + " is " + std::to_string(width) + ", expected a multiple of " +
                    parts_key + ", " + std::to_string(parts));
  // Who goes on to divide by it cannot.
  if (parts == 0) throw KeyError(parts_key + " is 0");
}

float attention_scale(uint32_t head_width) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width)));
}

void require_flag(const Checkpoint& checkpoint, const std::string& key, bool expected) {
  if (checkpoint.flag(key, expected) == expected) return;
  checkpoint.refuse(key + " is " + (expected ? "false, expected true" : "true, expected false"));
}

uint32_t stored_rows(const Checkpoint& checkpoint, const std::string& name) {
  const std::vector<uint64_t>& shape = checkpoint.shape(name);
  if (shape.size() != 2 || shape[0] == 0 || shape[0] > kMaxSize) {
    throw InputError("tensor " + name + " has " + std::to_string(shape.empty() ? 0 : shape[0]) +
                     " rows and " + std::to_string(shape.size()) +
                     " dimensions, expected a matrix with 1 to " + std::to_string(kMaxSize) +
                     " rows");
  }
  return static_cast<uint32_t>(shape[0]);
}

void write_metadata(const Checkpoint& checkpoint, Graph& graph,
                    const std::vector<std::pair<std::string, uint32_t>>& sizes) {
  const std::map<std::string, uint32_t> sorted(sizes.begin(), sizes.end());
  auto metadata = std::make_unique<schema::MetadataT>();
  metadata->architecture = checkpoint.model_type();
  metadata->licence = checkpoint.note("licence") + checkpoint.note("license");
  for (const auto& [key, value] : sorted) {
    auto pair = std::make_unique<schema::KeyValueT>();
    pair->key = key;
    pair->value = std::to_string(value);
    metadata->sizes.push_back(std::move(pair));
  }
  graph.model.metadata = std::move(metadata);
}

std::vector<float> rows_of(const std::vector<float>& matrix, size_t width, size_t first,
                           size_t count) {
  const auto begin = matrix.begin() + static_cast<std::ptrdiff_t>(first * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

std::vector<float> repeated_columns(const std::vector<float>& matrix, size_t width, size_t times) {
  std::vector<float> out;
  out.reserve(matrix.size() * times);
  for (auto row = matrix.begin(); row != matrix.end(); row += static_cast<std::ptrdiff_t>(width)) {
    for (size_t i = 0; i < times; ++i) {
      out.insert(out.end(), row, row + static_cast<std::ptrdiff_t>(width));
    }
  }
  return out;
}

std::vector<float> transposed(const std::vector<float>& matrix, size_t rows, size_t width) {
  std::vector<float> out(matrix.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < width; ++c) out[c * rows + r] = matrix[r * width + c];
  }
  return out;
}

std::vector<float> convolution_matrix(const std::vector<float>& kernel, size_t out, size_t in,
                                      size_t taps) {
  std::vector<float> matrix(kernel.size());
  for (size_t o = 0; o < out; ++o) {
    for (size_t i = 0; i < in; ++i) {
      for (size_t a = 0; a < taps; ++a) {
        matrix[(o * taps + a) * in + i] = kernel[(o * in + i) * taps + a];
      }
    }
  }
  return matrix;
}

std::vector<float> sinusoids(const std::vector<double>& positions, const std::vector<double>& f) {
  std::vector<float> out;
  out.reserve(positions.size() * 2 * f.size());
  for (const double position : positions) {
    for (const double frequency : f) {
      out.push_back(static_cast<float>(std::sin(position * frequency)));
    }
    for (const double frequency : f) {
      out.push_back(static_cast<float>(std::cos(position * frequency)));
    }
  }
  return out;
}

uint32_t Parts::matrix(const std::string& name, uint32_t rows, uint32_t width) {
  if (const auto found = weights_.find(name); found != weights_.end()) return found->second;
  return weights_[name] = builder_.weight(name, rows, width, checkpoint_.matrix(name, rows, width));
}

uint32_t Parts::vector(const std::string& name, uint32_t width) {
  if (const auto found = weights_.find(name); found != weights_.end()) return found->second;
  return weights_[name] = builder_.weight(name, 1, width, checkpoint_.vector(name, width));
}

uint32_t Parts::linear(const std::string& name, uint32_t x, const std::string& prefix, uint32_t in,
                       uint32_t out, bool bias) {
  const uint32_t added = bias ? vector(prefix + ".bias", out) : GraphBuilder::kNone;
  return builder_.linear(name, x, matrix(prefix + ".weight", out, in), added);
}

uint32_t Parts::layer_norm(const std::string& name, uint32_t x, const std::string& prefix,
                           uint32_t width, float epsilon) {
  const uint32_t bias = vector(prefix + ".bias", width);
  return builder_.layer_norm(name, x, vector(prefix + ".weight", width), bias, epsilon);
}

uint32_t Parts::rms_norm(const std::string& name, uint32_t x, const std::string& prefix,
                         uint32_t width, float epsilon) {
  return builder_.rms_norm(name, x, vector(prefix + ".weight", width), epsilon);
}

uint32_t Parts::causal_convolution(const std::string& name, uint32_t x, const std::string& prefix,
                                   uint32_t width, uint32_t taps, bool bias,
                                   const std::string& state) {
  schema::ConvolutionOptionsT options;
  options.heads = width;
  options.taps = taps;
  options.left = taps - 1;
  const uint32_t kernel = builder_.weight(prefix + ".weight", width, taps,
                                          checkpoint_.tensor(prefix + ".weight", {width, 1, taps}));
  uint32_t memory = GraphBuilder::kNone;
  if (taps > 1) memory = builder_.ring_state(state, builder_.ring(state, taps - 1), width);
  const uint32_t y =
      builder_.convolution(name, x, kernel, memory, options,
                           bias ? vector(prefix + ".bias", width) : GraphBuilder::kNone);
  if (taps > 1) builder_.ring_push({x}, {memory});
  return y;
}

const Parts::Packed& Parts::packed(const std::string& prefix, uint32_t all, uint32_t in,
                                   bool bias) {
  if (packed_.prefix != prefix) {
    packed_ = {prefix, checkpoint_.matrix(prefix + ".weight", all, in), {}};
    if (bias) packed_.bias = checkpoint_.vector(prefix + ".bias", all);
  }
  return packed_;
}

uint32_t Parts::linear_rows(const std::string& name, uint32_t x, const std::string& prefix,
                            uint32_t in, uint32_t all, uint32_t first, uint32_t out, bool bias) {
  const Packed& packed = this->packed(prefix, all, in, bias);
  const std::string suffix = ":" + std::to_string(first);
  const uint32_t weight =
      builder_.weight(prefix + ".weight" + suffix, out, in, rows_of(packed.weight, in, first, out));
  const uint32_t offset =
      bias ? builder_.weight(prefix + ".bias" + suffix, 1, out, rows_of(packed.bias, 1, first, out))
           : GraphBuilder::kNone;
  return builder_.linear(name, x, weight, offset);
}

}  // namespace oxbow::convert
