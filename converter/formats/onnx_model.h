#pragma once

// An ONNX file as a checkpoint of Hugging Face transformers: its tensors under the names the importers
// ask for, in the layout they ask for. Exporters give matrices that they turned around names of their
// own (onnx::MatMul_123); the operations that use them tell the right ones. Only the weights are read:
// that the graph computes what the model's original does is taken on trust.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/formats/onnx.h"
#include "host/tensor_file.h"

namespace oxbow::convert {

/// The graph's float tensors that are weights. They point to where those of `graph` point to. Throws InputError for
/// what is quantised or fused, which has other operations and other weights.
TensorMap name_onnx_tensors(const std::string& path, const OnnxGraph& graph);

/// What a config.json would say, from the shapes of the tensors and from what the operations do. Throws
/// InputError when they do not tell.
nlohmann::json derive_onnx_config(const std::string& path, const OnnxGraph& graph,
                                  const TensorMap& tensors);

class OnnxFile : public TensorFile {
 public:
  /// Throws InputError.
  explicit OnnxFile(const std::string& path);

  /// For a file that has no config.json beside it; `note` becomes what was found.
  nlohmann::json derive_config(std::string* note) const;

 private:
  OnnxGraph graph_;
};

}  // namespace oxbow::convert
