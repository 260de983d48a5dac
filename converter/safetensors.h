#pragma once

// Reads .safetensors: 8 bytes of header length, a JSON header, raw little-endian row-major data.
// The file is mapped and nothing in it is believed: lengths, names, types, shapes and offsets are
// checked when it is opened, and every error names the file and the tensor.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "converter/io_file.h"

namespace oxbow::convert {

enum class Dtype : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

const char* dtype_name(Dtype dtype);
size_t dtype_bytes(Dtype dtype);
/// Floating point as opposed to integer or boolean.
bool is_float(Dtype dtype);

/// One tensor in a mapped file; valid as long as the file object.
struct StoredTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<uint64_t> shape;
  /// Product of the shape; 1 for a scalar.
  uint64_t count = 0;
  /// count * dtype_bytes(dtype) bytes, of any alignment.
  std::span<const std::byte> bytes;

  /// "F32[3, 4]"
  std::string describe() const;
};

class Safetensors {
 public:
  /// Throws InputError.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::span<const std::byte> file_bytes() const { return file_.bytes(); }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The optional `__metadata__` strings.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Null when there is none of this name.
  const StoredTensor* find(const std::string& name) const;
  /// Throws InputError when there is none of this name.
  const StoredTensor& at(const std::string& name) const;

  /// Values of a floating-point tensor; F64 is rounded. Throws InputError for other types.
  std::vector<float> floats(const std::string& name) const;
  /// Values of an integer or boolean tensor. Throws InputError for other types.
  std::vector<int64_t> integers(const std::string& name) const;

 private:
  MappedFile file_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Values of a tensor whose type is known to fit; see is_float().
std::vector<float> to_floats(const StoredTensor& tensor);
std::vector<int64_t> to_integers(const StoredTensor& tensor);

}  // namespace oxbow::convert
