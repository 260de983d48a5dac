#pragma once

// Parts that several architectures are made of: pre-norm decoders with learned relative positions
// and a memory of earlier segments, optionally compressed when it leaves (Dai et al. 2019, Rae et
// al. 2019). The importers in arch/ say which parts and read their own keys.

#include <cstdint>
#include <optional>
#include <string>

#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

/// How rows that leave the memory become compressed rows, `rate` at a time.
struct Compression {
  enum class Function { kConvolution, kMean, kMax, kMostUsed };
  Function function = Function::kConvolution;
  uint32_t rate = 1;
  /// Of the convolution, from one tap to the next; 0 taps: `rate` of them. The last tap is the group's last row.
  uint32_t taps = 0;
  uint32_t dilation = 1;
  /// Compressed rows kept; 0: rows simply leave, still `rate` at a time.
  uint32_t memory_rows = 0;
};

struct MemoryDecoder {
  uint32_t vocabulary = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t inner_width = 0;
  uint32_t layers = 0;
  uint32_t memory_rows = 0;
  uint32_t max_segment = 0;
  float epsilon = 1e-5f;
  schema::Activation activation = schema::Activation::Relu;
  std::optional<Compression> compression;
};

/// Reads the keys that all models of this kind share; the caller adds `compression`.
MemoryDecoder read_memory_decoder(const Checkpoint& checkpoint, const ImportOptions& options);

/// Builds the whole graph and the metadata that belongs to it.
void build_memory_decoder(const Checkpoint& checkpoint, const MemoryDecoder& config, Graph& graph);

}  // namespace oxbow::convert
