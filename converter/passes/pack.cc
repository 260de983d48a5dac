// Turns float weights into the bytes the kernels read in place. runtime/base/tensor.h draws the
// layouts. A weight starts on a multiple of 64 bytes; a large one on a multiple of 16 KiB, the
// largest page size in use, so that it shares no page with its neighbours and can be mapped or
// released alone.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "converter/passes/passes.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

constexpr uint64_t kLargeBytes = 64 * 1024;

size_t element_place(const schema::TensorT& tensor, size_t row, size_t column) {
  if (tensor.layout == schema::Layout::RowMajor) {
    return row * row_bytes(DataType::kI8, tensor.width) + column;
  }
  const size_t blocks = ceil_div(tensor.width, kBlockColumns);
  const size_t block = row / kBlockRows * blocks + column / kBlockColumns;
  return (block * kBlockRows + row % kBlockRows) * kBlockColumns + column % kBlockColumns;
}

/// Symmetric, the largest magnitude of a group becomes 127. Returns the relative error.
double pack_i8(const schema::TensorT& tensor, const std::vector<float>& values, std::byte* out) {
  const size_t width = tensor.width, groups = tensor.scale_groups, group_width = width / groups;
  std::byte* scales = out + element_bytes(DataType::kI8, static_cast<Layout>(tensor.layout),
                                          tensor.rows, tensor.width);
  double difference = 0, energy = 0;
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
        out[element_place(tensor, row, i)] = static_cast<std::byte>(static_cast<int8_t>(rounded));
        const double error = double{rounded} * scale - value;
        difference += error * error;
        energy += double{value} * value;
      }
      std::memcpy(scales + (row * groups + group) * sizeof(float), &scale, sizeof(float));
    }
  }
  return energy > 0 ? std::sqrt(difference / energy) : 0;
}

}  // namespace

PackedWeights pack(Graph& graph) {
  PackedWeights packed;
  uint64_t end = 0;
  for (const auto& [index, values] : graph.weights) {
    schema::TensorT& tensor = graph.tensor(index);
    tensor.offset =
        round_up(end, tensor.bytes >= kLargeBytes ? kSegmentAlignment : kTensorAlignment);
    end = tensor.offset + tensor.bytes;
  }
  packed.data.resize(round_up(end, kTensorAlignment));
  for (const auto& [index, values] : graph.weights) {
    const schema::TensorT& tensor = graph.tensor(index);
    std::byte* out = packed.data.data() + tensor.offset;
    if (tensor.type == schema::DataType::I8) {
      packed.errors[tensor.name] = pack_i8(tensor, values, out);
    } else {
      std::memcpy(out, values.data(), values.size() * sizeof(float));
    }
  }
  return packed;
}

}  // namespace oxbow::convert
