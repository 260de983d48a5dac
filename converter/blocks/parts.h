#pragma once

// What importers are made of: the layers of deep-learning libraries, by the names their tensors have
// in a checkpoint, and the keys that many configurations share.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "converter/formats/checkpoint.h"
#include "converter/formats/limits.h"
#include "converter/graph.h"

namespace oxbow::convert {

/// Tokens of one run of a model that streams, unless the user says otherwise.
inline constexpr uint32_t kDefaultSegment = 64;

/// An activation in the words of Hugging Face's configurations: relu, gelu, gelu_new, silu, ...
bool is_activation(const std::string& name);
schema::Activation read_activation(const Checkpoint& checkpoint, const std::string& key,
                                   const std::string& fallback);

/// Passes over the keys of a Hugging Face configuration that concern training, tokenizers,
/// generation or the Python objects themselves; with a prefix, "outer.", those of an object in it.
void ignore_common_keys(const Checkpoint& checkpoint, const std::string& prefix = "");

/// The tokens that begin, end and fill texts.
void read_generation(const Checkpoint& checkpoint, uint32_t vocabulary, Graph& graph);

/// The size of the vocabulary in configurations of labml.ai's models: n_tokens, or vocab_size, or both.
uint32_t read_labml_vocabulary(const Checkpoint& checkpoint);

/// Tensors' names may lack a prefix when only the inner model was saved: `prefix` if there is a tensor
/// prefix + name, else nothing.
std::string optional_prefix(const Checkpoint& checkpoint, const std::string& prefix,
                            const std::string& name);

/// Most tokens of one run of a model that streams: what the user asked for, or kDefaultSegment, or
/// more when `segment_lengths` of the configuration say so.
uint32_t read_segment(const Checkpoint& checkpoint, const ImportOptions& options);

/// Throws unless `width`, the value of `width_key`, is a multiple of `parts`, that of `parts_key`.
void require_multiple(const Checkpoint& checkpoint, const std::string& width_key, uint32_t width,
                      const std::string& parts_key, uint32_t parts);

/// 1 / sqrt(head_width): what nearly all attention multiplies its scores with.
float attention_scale(uint32_t head_width);

/// Throws unless the flag `key`, if it is there, is `expected`.
void require_flag(const Checkpoint& checkpoint, const std::string& key, bool expected);

/// Rows of a matrix in the checkpoint whose number no key tells, such as a classifier's.
uint32_t stored_rows(const Checkpoint& checkpoint, const std::string& name);

/// Metadata with the architecture's name, its licence and `sizes`; the rest is added on conversion.
void write_metadata(const Checkpoint& checkpoint, Graph& graph,
                    const std::vector<std::pair<std::string, uint32_t>>& sizes);

/// Rows [first, first + count) of a matrix with `width` columns.
std::vector<float> rows_of(const std::vector<float>& matrix, size_t width, size_t first,
                           size_t count);
/// [rows, width] to [rows, times * width]: every row `times` times side by side.
std::vector<float> repeated_columns(const std::vector<float>& matrix, size_t width, size_t times);
/// [rows, width] to [width, rows].
std::vector<float> transposed(const std::vector<float>& matrix, size_t rows, size_t width);
/// A convolution whose stride is its length, kernel [out, in, taps], as a matrix on `taps` rows side by
/// side.
std::vector<float> convolution_matrix(const std::vector<float>& kernel, size_t out, size_t in,
                                      size_t taps);
/// Row p of [rows, width] is sin(p f) for all frequencies f, then cos(p f): half of the width each.
std::vector<float> sinusoids(const std::vector<double>& positions, const std::vector<double>& f);

/// Layers by the prefix of their tensors' names. Tensors read twice are the same weight.
class Parts {
 public:
  Parts(const Checkpoint& checkpoint, GraphBuilder& builder)
      : checkpoint_(checkpoint), builder_(builder) {}

  uint32_t matrix(const std::string& name, uint32_t rows, uint32_t width);
  /// A vector as a weight of one row.
  uint32_t vector(const std::string& name, uint32_t width);
  /// nn.Linear: prefix.weight [width, input width], and prefix.bias unless `bias` is false.
  uint32_t linear(const std::string& name, uint32_t x, const std::string& prefix, uint32_t in,
                  uint32_t out, bool bias = true);
  /// nn.LayerNorm: prefix.weight, prefix.bias.
  uint32_t layer_norm(const std::string& name, uint32_t x, const std::string& prefix,
                      uint32_t width, float epsilon);
  /// prefix.weight alone.
  uint32_t rms_norm(const std::string& name, uint32_t x, const std::string& prefix, uint32_t width,
                    float epsilon);
  /// nn.Conv1d with a filter of `taps` rows for each channel, the last tap on the own row: prefix.weight
  /// [width, 1, taps], and prefix.bias if `bias`. The rows before are kept in the state `state`.
  uint32_t causal_convolution(const std::string& name, uint32_t x, const std::string& prefix,
                              uint32_t width, uint32_t taps, bool bias, const std::string& state);
  /// A linear layer whose rows are several layers'. It is kept until another is asked for: its parts come one after the
  /// other, and it is read once.
  struct Packed {
    std::string prefix;
    std::vector<float> weight, bias;
  };
  const Packed& packed(const std::string& prefix, uint32_t all, uint32_t in, bool bias);
  /// The rows of a linear layer's matrix [first, first + out) as a layer of their own.
  uint32_t linear_rows(const std::string& name, uint32_t x, const std::string& prefix, uint32_t in,
                       uint32_t all, uint32_t first, uint32_t out, bool bias);

 private:
  const Checkpoint& checkpoint_;
  GraphBuilder& builder_;
  Packed packed_;
  std::map<std::string, uint32_t> weights_;
};

}  // namespace oxbow::convert
