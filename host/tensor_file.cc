#include "host/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "host/errors.h"
#include "host/ggml_blocks.h"
#include "host/half.h"
#include "runtime/base/checked.h"

namespace oxbow {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it lies");

struct DtypeRow {
  Dtype dtype;
  const char* name;
  size_t block;
  size_t bytes;
  bool is_float;
};
constexpr DtypeRow kDtypes[] = {
    {Dtype::kF64, "F64", 1, 8, true},
    {Dtype::kF32, "F32", 1, 4, true},
    {Dtype::kF16, "F16", 1, 2, true},
    {Dtype::kBF16, "BF16", 1, 2, true},
    {Dtype::kI64, "I64", 1, 8, false},
    {Dtype::kI32, "I32", 1, 4, false},
    {Dtype::kI16, "I16", 1, 2, false},
    {Dtype::kI8, "I8", 1, 1, false},
    {Dtype::kU8, "U8", 1, 1, false},
    {Dtype::kBool, "BOOL", 1, 1, false},
    {Dtype::kQ8_0, "Q8_0", 32, 34, true},
    {Dtype::kQ4_0, "Q4_0", 32, 18, true},
    {Dtype::kQ4_1, "Q4_1", 32, 20, true},
    {Dtype::kQ5_0, "Q5_0", 32, 22, true},
    {Dtype::kQ5_1, "Q5_1", 32, 24, true},
    {Dtype::kQ2_K, "Q2_K", 256, 84, true},
    {Dtype::kQ3_K, "Q3_K", 256, 110, true},
    {Dtype::kQ4_K, "Q4_K", 256, 144, true},
    {Dtype::kQ5_K, "Q5_K", 256, 176, true},
    {Dtype::kQ6_K, "Q6_K", 256, 210, true},
    {Dtype::kIQ4_NL, "IQ4_NL", 32, 18, true},
    {Dtype::kIQ4_XS, "IQ4_XS", 256, 136, true},
    {Dtype::kTQ1_0, "TQ1_0", 256, 54, true},
    {Dtype::kTQ2_0, "TQ2_0", 256, 66, true},
    {Dtype::kQ8_K, "Q8_K", 256, 292, true},
    {Dtype::kIQ1_S, "IQ1_S", 256, 50, true},
    {Dtype::kIQ1_M, "IQ1_M", 256, 56, true},
    {Dtype::kIQ2_XXS, "IQ2_XXS", 256, 66, true},
    {Dtype::kIQ2_XS, "IQ2_XS", 256, 74, true},
    {Dtype::kIQ2_S, "IQ2_S", 256, 82, true},
    {Dtype::kIQ3_XXS, "IQ3_XXS", 256, 98, true},
    {Dtype::kIQ3_S, "IQ3_S", 256, 110, true},
    {Dtype::kMXFP4, "MXFP4", 32, 17, true},
    {Dtype::kNVFP4, "NVFP4", 64, 36, true},
};

const DtypeRow& row(Dtype dtype) {
  return *std::find_if(std::begin(kDtypes), std::end(kDtypes),
                       [&](const DtypeRow& r) { return r.dtype == dtype; });
}

/// Calls `visit` with the place of every element, in row-major order.
template <typename Visit>
void for_each_place(const StoredTensor& tensor, Visit visit) {
  if (tensor.strides.empty()) {
    for (uint64_t i = 0; i < tensor.count; ++i) visit(i);
    return;
  }
  const std::vector<uint64_t>& sizes =
      tensor.stride_shape.empty() ? tensor.shape : tensor.stride_shape;
  std::vector<uint64_t> index(sizes.size(), 0);
  uint64_t place = 0;
  for (uint64_t i = 0; i < tensor.count; ++i) {
    visit(place);
    for (size_t d = index.size(); d-- > 0;) {
      place += tensor.strides[d];
      if (++index[d] < sizes[d]) break;
      place -= tensor.strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

template <typename Stored, typename Out, typename Convert>
std::vector<Out> convert_all(const StoredTensor& tensor, Convert convert) {
  std::vector<Out> out(tensor.count);
  auto* next = out.data();
  for_each_place(tensor, [&](uint64_t place) {
    Stored value;
    std::memcpy(&value, tensor.bytes.data() + place * sizeof(Stored), sizeof(Stored));
    *next++ = convert(value);
  });
  return out;
}

std::vector<float> convert_blocks(const StoredTensor& tensor) {
  const size_t block = dtype_block(tensor.dtype), block_bytes = dtype_bytes(tensor.dtype);
  std::vector<float> out(tensor.count);
  auto* next = out.data();
  float values[kMaxGgmlBlock];
  uint64_t decoded = UINT64_MAX;
  for_each_place(tensor, [&](uint64_t place) {
    if (place / block != decoded) {
      decoded = place / block;
      decode_ggml_block(tensor.dtype, tensor.bytes.data() + decoded * block_bytes, values);
    }
    *next++ = values[place % block];
  });
  return out;
}

/// Those of the shape, laid out row by row; they mean nothing for a shape whose product overflows.
std::vector<uint64_t> packed_strides(const std::vector<uint64_t>& shape) {
  std::vector<uint64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool is_packed(const std::vector<uint64_t>& shape, const std::vector<uint64_t>& strides) {
  const std::vector<uint64_t> packed = packed_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    // The stride of a single index is never used, and may be anything.
    if (shape[d] != 1 && strides[d] != packed[d]) return false;
  }
  return true;
}

}  // namespace

const char* dtype_name(Dtype dtype) { return row(dtype).name; }
size_t dtype_block(Dtype dtype) { return row(dtype).block; }
size_t dtype_bytes(Dtype dtype) { return row(dtype).bytes; }
bool is_float(Dtype dtype) { return row(dtype).is_float; }

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string StoredTensor::describe() const {
  std::string text = std::string(dtype_name(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

uint64_t StoredTensor::packed_bytes() const {
  return count / dtype_block(dtype) * dtype_bytes(dtype);
}

StoredTensor view_of(const std::string& where, Dtype dtype, std::vector<uint64_t> shape,
                     std::vector<uint64_t> strides, uint64_t offset,
                     std::span<const std::byte> storage) {
  const size_t block = dtype_block(dtype), block_bytes = dtype_bytes(dtype);
  if (shape.size() > kMaxDimensions || (!strides.empty() && strides.size() != shape.size())) {
    throw InputError(where + " has " + std::to_string(shape.size()) + " sizes and " +
                     std::to_string(strides.size()) + " strides, expected as many, and at most " +
                     std::to_string(kMaxDimensions));
  }
  StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.count = 1;
  bool fits = true;
  const bool empty = std::count(tensor.shape.begin(), tensor.shape.end(), 0u) != 0;
  for (const uint64_t size : tensor.shape) {
    // A zero makes the tensor empty but excuses no size beside it.
    uint64_t wide = 0;
    fits = fits && checked_mul(tensor.count, std::max<uint64_t>(size, 1), &tensor.count) &&
           checked_mul(tensor.count, block_bytes, &wide);
  }
  if (!fits) throw InputError(where + " has a shape whose product does not fit in 64 bits");
  if (block > 1 && (tensor.shape.empty() || tensor.shape.back() % block != 0)) {
    throw InputError(where + " is " + tensor.describe() + ", expected rows of whole blocks of " +
                     std::to_string(block));
  }
  if (empty) {
    tensor.count = 0;
    return tensor;
  }

  uint64_t last = tensor.count - 1;
  if (!strides.empty() && !is_packed(tensor.shape, strides)) {
    last = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      uint64_t reach = 0;
      fits = fits && checked_mul(tensor.shape[d] - 1, strides[d], &reach) &&
             checked_add(last, reach, &last);
    }
    tensor.strides = std::move(strides);
    if (block > 1) throw InputError(where + " has strides, which blocks cannot have");
  }
  uint64_t end = 0, end_bytes = 0;
  fits = fits && checked_add(last, 1, &end) && checked_add(end, offset, &end) &&
         checked_mul(end / block, block_bytes, &end_bytes);
  if (fits && end_bytes > storage.size() && offset == 0 && tensor.strides.empty()) {
    throw InputError(where + " has " + std::to_string(storage.size()) + " bytes, expected " +
                     std::to_string(end_bytes) + " for " + tensor.describe());
  }
  if (!fits || end_bytes > storage.size() || offset % block != 0) {
    throw InputError(where + " is " + tensor.describe() + " from element " +
                     std::to_string(offset) + " on, which leaves its storage of " +
                     std::to_string(storage.size()) + " bytes");
  }
  if (tensor.count > last + 1 && tensor.count > kMaxRepeatedElements) {
    throw InputError(where + " is " + tensor.describe() + " of only " + std::to_string(last + 1) +
                     " stored elements, expected at most " + std::to_string(kMaxRepeatedElements) +
                     " repeated ones");
  }
  const uint64_t begin_bytes = offset / block * block_bytes;
  tensor.bytes = storage.subspan(begin_bytes, end_bytes - begin_bytes);
  return tensor;
}

void refuse_overlaps(const std::string& path, const TensorMap& tensors) {
  std::vector<std::pair<const std::byte*, const std::string*>> order;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.bytes.empty()) order.emplace_back(tensor.bytes.data(), &name);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 1; i < order.size(); ++i) {
    const StoredTensor& before = tensors.at(*order[i - 1].second);
    if (before.bytes.data() + before.bytes.size() > order[i].first) {
      throw InputError(path + ": tensors " + printable(*order[i - 1].second) + " and " +
                       printable(*order[i].second) + " overlap");
    }
  }
}

std::vector<float> to_floats(const StoredTensor& tensor) {
  switch (tensor.dtype) {
    case Dtype::kF64:
      return convert_all<double, float>(tensor, [](double v) { return static_cast<float>(v); });
    case Dtype::kF16:
      return convert_all<uint16_t, float>(tensor, float_from_f16);
    case Dtype::kBF16:
      return convert_all<uint16_t, float>(tensor, float_from_bf16);
    default:
      if (is_ggml_block(tensor.dtype)) return convert_blocks(tensor);
      return convert_all<float, float>(tensor, [](float v) { return v; });
  }
}

std::vector<int64_t> to_integers(const StoredTensor& tensor) {
  const auto widen = [](auto v) { return static_cast<int64_t>(v); };
  switch (tensor.dtype) {
    case Dtype::kI32:
      return convert_all<int32_t, int64_t>(tensor, widen);
    case Dtype::kI16:
      return convert_all<int16_t, int64_t>(tensor, widen);
    case Dtype::kI8:
      return convert_all<int8_t, int64_t>(tensor, widen);
    case Dtype::kU8:
      return convert_all<uint8_t, int64_t>(tensor, widen);
    case Dtype::kBool:
      return convert_all<uint8_t, int64_t>(tensor, [](uint8_t v) { return int64_t{v != 0}; });
    default:
      return convert_all<int64_t, int64_t>(tensor, widen);
  }
}

const StoredTensor* TensorFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const StoredTensor& TensorFile::at(const std::string& name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) throw InputError(path() + ": tensor " + printable(name) + " is missing");
  return *tensor;
}

std::vector<float> TensorFile::floats(const std::string& name) const {
  const StoredTensor& tensor = at(name);
  if (!is_float(tensor.dtype)) {
    throw InputError(path() + ": tensor " + printable(name) + " is " + tensor.describe() +
                     ", expected F32, F16 or BF16");
  }
  return to_floats(tensor);
}

std::vector<int64_t> TensorFile::integers(const std::string& name) const {
  const StoredTensor& tensor = at(name);
  if (is_float(tensor.dtype)) {
    throw InputError(path() + ": tensor " + printable(name) + " is " + tensor.describe() +
                     ", expected integers");
  }
  return to_integers(tensor);
}

}  // namespace oxbow
