#pragma once

// Reads what torch.save writes: the zip archives of torch 1.6 and later, and the older layout of
// pickles followed by storages. See pickle.h for why nothing in them is executed. The tensors are
// those of one dictionary: the file's own, or the only one inside it that holds any, or the one that
// a key names.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "host/tensor_file.h"

namespace oxbow::convert {

struct TorchContents {
  TensorMap tensors;
  std::vector<std::string> notes;
};

/// By the first bytes: an archive, the older layout, or the one before that, which is only refused.
bool looks_like_torch(std::span<const std::byte> file);

/// The tensors of `file`, all of it; `path` is for messages, `key` as in open_tensor_file(). Throws
/// InputError.
TorchContents read_torch(const std::string& path, std::span<const std::byte> file,
                         const std::string& key = "");

class TorchFile : public TensorFile {
 public:
  /// Throws InputError.
  explicit TorchFile(const std::string& path, const std::string& key = "");
};

}  // namespace oxbow::convert
