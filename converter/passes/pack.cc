// Turns float weights into the bytes the kernels read in place. runtime/base/tensor.h draws the
// layouts. A weight starts on a multiple of 64 bytes; a large one on a multiple of 16 KiB, the
// largest page size in use, so that it shares no page with its neighbours and can be mapped or
// released alone.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "converter/passes/passes.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

constexpr uint64_t kLargeBytes = 64 * 1024;
/// More only wait for the memory, and each holds a part of a weight.
constexpr unsigned kMostThreads = 4;

/// Some rows of a weight.
struct Part {
  uint32_t weight;
  uint32_t first, count;
  PackError error = {};
};

std::vector<Part> cut(const Graph& graph) {
  std::vector<Part> parts;
  for (const auto& [index, weight] : graph.weights) {
    const uint32_t step =
        packs_in_parts(graph.tensor(index).type) ? rows_at_once(weight.width()) : weight.rows();
    for (uint32_t first = 0; first < weight.rows(); first += step) {
      parts.push_back({index, first, std::min(step, weight.rows() - first)});
    }
  }
  return parts;
}

/// A part is packed as a weight of its own; its elements and its scales then go to where they belong.
void pack_part(const Graph& graph, Part& part, const WriteData& write) {
  const schema::TensorT& whole = graph.tensor(part.weight);
  schema::TensorT tensor = whole;
  tensor.rows = part.count;
  const auto elements = [&](uint32_t rows) {
    return element_bytes(static_cast<DataType>(whole.type), static_cast<Layout>(whole.layout), rows,
                         whole.width);
  };
  const size_t scale_bytes = size_t{whole.scale_groups} * sizeof(float);
  std::vector<std::byte> bytes(elements(part.count) + part.count * scale_bytes);
  part.error =
      pack_weight(tensor, graph.weights.at(part.weight).read(part.first, part.count), bytes.data());
  const std::span<const std::byte> packed(bytes);
  write(whole.offset + elements(part.first), packed.first(elements(part.count)));
  write(whole.offset + elements(whole.rows) + part.first * scale_bytes,
        packed.subspan(elements(part.count)));
}

}  // namespace

uint64_t place_weights(Graph& graph) {
  uint64_t end = 0;
  for (const auto& [index, weight] : graph.weights) {
    schema::TensorT& tensor = graph.tensor(index);
    tensor.offset =
        round_up(end, tensor.bytes >= kLargeBytes ? kSegmentAlignment : kTensorAlignment);
    end = tensor.offset + tensor.bytes;
  }
  return round_up(end, kTensorAlignment);
}

WeightErrors pack(const Graph& graph, const WriteData& write,
                  const std::function<void(uint64_t bytes)>& done) {
  std::vector<Part> parts = cut(graph);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) pack_part(graph, parts[i], write);
  };
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  std::vector<std::future<void>> others;
  for (unsigned i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, work));
  // What is told comes from this thread alone, and in the end, for the others may have had all parts.
  const auto tell = [&](const Part& part) {
    const schema::TensorT& tensor = graph.tensor(part.weight);
    if (done) done(tensor.offset + tensor.bytes / tensor.rows * (part.first + part.count));
  };
  for (size_t i = next++; i < parts.size(); i = next++) {
    pack_part(graph, parts[i], write);
    tell(parts[i]);
  }
  for (std::future<void>& other : others) other.get();
  if (!parts.empty()) tell(parts.back());

  std::map<uint32_t, PackError> sums;
  for (const Part& part : parts) {
    sums[part.weight].difference += part.error.difference;
    sums[part.weight].energy += part.error.energy;
  }
  WeightErrors errors;
  for (const auto& [index, sum] : sums) {
    if (graph.tensor(index).type == schema::DataType::F32) continue;
    errors[graph.tensor(index).name] = sum.energy > 0 ? std::sqrt(sum.difference / sum.energy) : 0;
  }
  return errors;
}

}  // namespace oxbow::convert
