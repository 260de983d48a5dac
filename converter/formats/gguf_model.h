#pragma once

// A GGUF file as a checkpoint of Hugging Face transformers: its keys become a config.json, its
// tensors get the names and the layout that the importers ask for. What would change the results and
// has no counterpart there is refused by name.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"
#include "host/tensor_file.h"

namespace oxbow::convert {

struct HuggingFaceModel {
  nlohmann::json config;
  TensorMap tensors;
  /// Numbers that the file does not have as they were.
  std::vector<std::vector<float>> computed;
};

/// Its tensors point to where those of `gguf` point to, or into `computed`. Throws InputError.
HuggingFaceModel to_hugging_face(const Gguf& gguf);

class GgufFile : public TensorFile {
 public:
  /// Throws InputError.
  explicit GgufFile(const std::string& path);

  const Gguf& gguf() const { return gguf_; }
  const nlohmann::json& config() const { return config_; }

 private:
  Gguf gguf_;
  nlohmann::json config_;
  std::vector<std::vector<float>> computed_;
};

/// The GGUF file that `path` means: itself when it is a file, or the only one in a directory without
/// any other checkpoint; empty: none. Throws InputError when a directory has several.
std::string find_gguf(const std::string& path);

}  // namespace oxbow::convert
