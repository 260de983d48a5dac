#pragma once

// Reads .safetensors: 8 bytes of header length, a JSON header, raw little-endian row-major data.
// The file is mapped and nothing in it is believed: lengths, names, types, shapes and offsets are
// checked when it is opened, and every error names the file and the tensor.

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "host/tensor_file.h"

namespace oxbow {

struct SafetensorsContents {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;
};

/// The length at its start is that of a header in braces.
bool looks_like_safetensors(std::span<const std::byte> file);

/// The tensors in `file`, all of it; `path` is for messages. Throws InputError.
SafetensorsContents read_safetensors(const std::string& path, std::span<const std::byte> file);

class Safetensors : public TensorFile {
 public:
  /// Throws InputError.
  explicit Safetensors(const std::string& path);

  /// The optional `__metadata__` strings.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::map<std::string, std::string> metadata_;
};

}  // namespace oxbow
