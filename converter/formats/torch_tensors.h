#pragma once

// Finds the tensors in what a torch pickle describes: which dictionary holds them, what they are
// called, and which part of which storage each one is.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "converter/formats/pickle.h"
#include "converter/formats/torch_file.h"

namespace oxbow::convert {

/// What a pickle says about a storage that lies outside of it.
struct TorchStorage {
  /// Empty: bytes, whose type the tensor knows.
  std::optional<Dtype> dtype;
  std::string_view key;
  /// Of the dtype, or bytes.
  uint64_t elements = 0;
  /// The part of the storage `key` that it is, in elements; the older layout has such views.
  bool is_view = false;
  uint64_t view_offset = 0, view_elements = 0;

  uint64_t element_bytes() const { return dtype ? dtype_bytes(*dtype) : 1; }
};

/// What the node is, an id of a storage. Throws InputError when it is none.
TorchStorage read_storage(const std::string& where, const Pickle& pickle, const PickleNode& node);

/// The bytes of a storage, as many as it claims. Throws InputError.
using FindStorage =
    std::function<std::span<const std::byte>(const std::string& where, const TorchStorage&)>;

/// The tensors of the dictionary that `key` names, as in open_tensor_file(). Throws InputError.
TorchContents collect_tensors(const std::string& path, const Pickle& pickle, const std::string& key,
                              const FindStorage& find_storage);

}  // namespace oxbow::convert
