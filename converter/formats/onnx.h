#pragma once

// Reads the graph of an ONNX file: its operations with the names of what they take and give, and its
// tensors. Nothing is executed, and nothing is believed: every tensor is proven to lie within the file.
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/tensor_file.h"

namespace oxbow::convert {

/// One tensor; as valid as the bytes it was read from.
struct OnnxTensor {
  std::string name;
  StoredTensor stored;
  /// The values where they are stored one by one, which small constants may be: then `stored` has no bytes.
  std::vector<int64_t> listed;

  /// Integers of either form; empty for other types.
  std::vector<int64_t> integers() const;
  /// The number of a tensor of one; nothing for others.
  std::optional<double> number() const;
};

struct OnnxNode {
  std::string op;
  /// Empty for those of the standard.
  std::string domain;
  std::string name;
  std::vector<std::string> inputs, outputs;
  /// Attributes of the kinds that are looked at.
  std::map<std::string, int64_t> integers;
  std::map<std::string, float> floats;
  std::map<std::string, std::string> texts;
  /// Of a Constant.
  std::optional<OnnxTensor> value;
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor> initialisers;
};

/// The graph of `file`, all of it; `path` is for messages. Throws InputError.
OnnxGraph read_onnx(const std::string& path, std::span<const std::byte> file);

}  // namespace oxbow::convert
