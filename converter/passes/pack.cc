// Turns float weights into the bytes the kernels read in place. runtime/base/tensor.h draws the
// layouts. A weight starts on a multiple of 64 bytes; a large one on a multiple of 16 KiB, the
// largest page size in use, so that it shares no page with its neighbours and can be mapped or
// released alone.

#include "converter/passes/passes.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

constexpr uint64_t kLargeBytes = 64 * 1024;

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
    const double error = pack_weight(tensor, values, out);
    if (tensor.type != schema::DataType::F32) packed.errors[tensor.name] = error;
  }
  return packed;
}

}  // namespace oxbow::convert
