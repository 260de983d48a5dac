#pragma once

// A file that holds tensors, whatever its format: mapped, and every tensor proven to lie within it
// before anybody reads a value.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/io_file.h"

namespace oxbow {

enum class Dtype : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  // ggml's blocks of 32, 64 or 256 elements (host/ggml_blocks.h).
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kTQ1_0,
  kTQ2_0,
  kQ8_K,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kMXFP4,
  kNVFP4,
};

const char* dtype_name(Dtype dtype);
/// Elements that are stored together: 1, or the length of a block of a row.
size_t dtype_block(Dtype dtype);
/// Bytes of one block.
size_t dtype_bytes(Dtype dtype);
/// Floating point as opposed to integer or boolean.
bool is_float(Dtype dtype);

/// "[2, 7, 65]"
std::string shape_text(const std::vector<uint64_t>& shape);

constexpr size_t kMaxDimensions = 16;
/// Elements of a tensor that has more of them than its file stores, because a stride is 0 or small.
/// Masks and positions are written so. Without a limit, a few bytes could ask for all memory.
constexpr uint64_t kMaxRepeatedElements = uint64_t{1} << 20;

/// One tensor in a mapped file; valid as long as the file object.
struct StoredTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<uint64_t> shape;
  /// Product of the shape; 1 for a scalar.
  uint64_t count = 0;
  /// Elements from one index to the next in each dimension; empty when the tensor is row-major
  /// without gaps.
  std::vector<uint64_t> strides;
  /// The sizes that the strides belong to, when a dimension of the shape takes several of them;
  /// empty: those of the shape.
  std::vector<uint64_t> stride_shape;
  /// From the first element to the last, of any alignment. Without strides: packed_bytes() bytes.
  std::span<const std::byte> bytes;

  /// "F32[3, 4]"
  std::string describe() const;
  /// Bytes it takes without strides.
  uint64_t packed_bytes() const;
};

using TensorMap = std::map<std::string, StoredTensor>;

/// A tensor that starts `offset` elements into `storage` and has these strides, or is row-major
/// without gaps when `strides` is empty. Throws InputError, which starts with `where`, unless
/// everything it reaches is inside `storage`.
StoredTensor view_of(const std::string& where, Dtype dtype, std::vector<uint64_t> shape,
                     std::vector<uint64_t> strides, uint64_t offset,
                     std::span<const std::byte> storage);

/// Throws InputError when two of the tensors of a file have bytes in common.
void refuse_overlaps(const std::string& path, const TensorMap& tensors);

/// Values of a tensor whose type is known to fit; see is_float().
std::vector<float> to_floats(const StoredTensor& tensor);
std::vector<int64_t> to_integers(const StoredTensor& tensor);

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  const std::string& path() const { return file_.path(); }
  std::span<const std::byte> file_bytes() const { return file_.bytes(); }
  const TensorMap& tensors() const { return tensors_; }
  /// What the reader chose or left out and the user may want to know.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Null when there is none of this name.
  const StoredTensor* find(const std::string& name) const;
  /// Throws InputError when there is none of this name.
  const StoredTensor& at(const std::string& name) const;

  /// Values of a floating-point tensor; F64 is rounded. Throws InputError for other types.
  std::vector<float> floats(const std::string& name) const;
  /// Values of an integer or boolean tensor. Throws InputError for other types.
  std::vector<int64_t> integers(const std::string& name) const;

 protected:
  /// Readers fill tensors_ and notes_ in their constructors.
  explicit TensorFile(const std::string& path) : file_(path) {}

  TensorMap tensors_;
  std::vector<std::string> notes_;

 private:
  MappedFile file_;
};

}  // namespace oxbow
