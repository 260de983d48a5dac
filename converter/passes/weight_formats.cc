#include "converter/passes/weight_formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

using Values = std::span<const float>;

PackError pack_f32(const schema::TensorT&, Values values, std::byte* out) {
  std::memcpy(out, values.data(), values.size_bytes());
  return {};
}

size_t i8_place(Layout layout, size_t width, size_t row, size_t column) {
  if (layout == Layout::kRowMajor) return row * row_bytes(DataType::kI8, width) + column;
  const size_t blocks = ceil_div(width, kBlockColumns);
  const size_t block = row / kBlockRows * blocks + column / kBlockColumns;
  return (block * kBlockRows + row % kBlockRows) * kBlockColumns + column % kBlockColumns;
}

/// Symmetric, the largest magnitude of a group becomes 127.
PackError pack_i8(const schema::TensorT& tensor, Values values, std::byte* out) {
  const auto layout = static_cast<Layout>(tensor.layout);
  const size_t width = tensor.width, groups = tensor.scale_groups, group_width = width / groups;
  std::byte* scales = out + element_bytes(DataType::kI8, layout, tensor.rows, width);
  PackError sums;
  for (size_t row = 0; row < tensor.rows; ++row) {
    for (size_t group = 0; group < groups; ++group) {
      const size_t first = group * group_width;
      float largest = 0;
      for (size_t i = first; i < first + group_width; ++i) {
        largest = std::max(largest, std::fabs(values[row * width + i]));
      }
      const float scale = largest / 127.0f;
      for (size_t i = first; i < first + group_width; ++i) {
        const float value = values[row * width + i];
        const float scaled = scale > 0 ? value / scale : 0.0f;
        const float rounded = std::clamp(std::nearbyint(scaled), -127.0f, 127.0f);
        out[i8_place(layout, width, row, i)] = static_cast<std::byte>(static_cast<int8_t>(rounded));
        const double error = double{rounded} * scale - value;
        sums.difference += error * error;
        sums.energy += double{value} * value;
      }
      std::memcpy(scales + (row * groups + group) * sizeof(float), &scale, sizeof(float));
    }
  }
  return sums;
}

struct Packer {
  schema::DataType type;
  PackError (*pack)(const schema::TensorT& tensor, Values values, std::byte* out);
};
constexpr Packer kPackers[] = {{schema::DataType::F32, pack_f32}, {schema::DataType::I8, pack_i8}};

}  // namespace

std::span<const WeightFormat> weight_formats() {
  static const WeightFormat formats[] = {
      {"f32", {}}, {"int8", {kI8Blocks, kI8OneScale}}, {"int4", {}, false}, {"ternary", {}, false}};
  return formats;
}

const WeightFormat& weight_format(std::string_view name) {
  for (const WeightFormat& format : weight_formats()) {
    if (format.name == name) return format;
  }
  throw std::logic_error("no weights of type " + std::string(name));
}

const Storage* choose_storage(const WeightFormat& format, TypeSet types) {
  for (const TypeSet wanted : format.storages) {
    for (const Storage& storage : kStorages) {
      if (storage.bit == wanted && (types & wanted) != 0) return &storage;
    }
  }
  return nullptr;
}

void store_as(const Storage& storage, schema::TensorT& tensor) {
  tensor.type = static_cast<schema::DataType>(storage.type);
  tensor.layout = static_cast<schema::Layout>(storage.layout);
  tensor.scale_groups = 1;
}

PackError pack_weight(const schema::TensorT& tensor, Values values, std::byte* out) {
  for (const Packer& packer : kPackers) {
    if (packer.type == tensor.type) return packer.pack(tensor, values, out);
  }
  throw std::logic_error("no weights of type " +
                         std::string(schema::EnumNameDataType(tensor.type)));
}

}  // namespace oxbow::convert
