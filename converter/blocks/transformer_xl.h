#pragma once

// Transformer-XL (Dai et al. 2019) with sinusoids or learned vectors for relative positions, as its authors wrote it and
// as it was taken over by others: the inputs of each layer are remembered, newest `memory_rows` rows
// kept. The importers in arch/ say where theirs differs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converter/blocks/adaptive_softmax.h"
#include "converter/blocks/memory_decoder.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct TransfoXl {
  AdaptiveWords words;
  uint32_t heads = 0;
  uint32_t head_width = 0;
  uint32_t inner_width = 0;
  uint32_t layers = 0;
  uint32_t memory_rows = 0;
  uint32_t max_segment = 0;
  /// Distances beyond this count as this one; 0: all are told apart.
  uint32_t clamp = 0;
  float epsilon = 1e-5f;
  bool pre_norm = false;
  /// Every query sees `memory_rows` keys, rather than all that are there.
  bool same_length = false;
  /// Each layer has position biases of its own.
  bool untied_biases = false;
  /// A stream begins with memories full of zeros, which are seen, rather than with empty ones.
  bool starts_with_zeros = false;
  /// The last layer's output is remembered too, though nothing reads it.
  bool remembers_output = false;
  /// Positions are vectors of each layer for the distances below `learned_distances`, the furthest of
  /// which stands for all beyond; 0: sinusoids.
  uint32_t learned_distances = 0;
  /// For so many distances the checkpoint has vectors.
  uint32_t stored_distances = 0;
  /// attn_type may be 1, which is that.
  bool may_learn_positions = false;
  /// Rows that leave the memory are compressed, and seen as such.
  std::optional<Compression> compression;
  /// In front of the names of the layers' tensors.
  std::string prefix;
};

/// X W^T for X [count, width] and W [rows, width].
std::vector<float> matrix_products(const std::vector<float>& x, const std::vector<float>& matrix,
                                   size_t width);
/// The sinusoids of the distances below `count`.
std::vector<float> sinusoid_distances(uint32_t count, uint32_t width);
/// The product of each head's part of the rows of `table` with that of `vector`: [rows, heads].
std::vector<float> head_products(const std::vector<float>& table, const std::vector<float>& vector,
                                 size_t heads);

/// Reads the keys that all models of this kind share. `config` has the defaults of those that may be
/// missing, the size of the vocabulary, and what no key tells.
void read_transfo_xl(const Checkpoint& checkpoint, const ImportOptions& options, TransfoXl* config);

/// Builds the whole graph and the metadata that belongs to it.
void build_transfo_xl(const Checkpoint& checkpoint, const TransfoXl& config, Graph& graph);

}  // namespace oxbow::convert
