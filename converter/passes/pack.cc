// Turns float weights into the bytes the kernels read in place. runtime/base/tensor.h draws the
// layouts. A weight starts on a multiple of 64 bytes; a large one on a multiple of 16 KiB, the
// largest page size in use, so that it shares no page with its neighbours and can be mapped or
// released alone.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "converter/passes/passes.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

constexpr uint64_t kLargeBytes = 64 * 1024;
/// More only wait for the memory, and each holds a part of a weight.
constexpr unsigned kMostThreads = 4;

/// The Fit of all matrices that the same enters. It is there from the first part of them to the last.
struct SharedFit {
  std::set<std::string> inputs;
  const Weight& matrix;
  std::atomic<size_t> parts = 0;
  std::once_flag once = {};
  std::unique_ptr<const Fit> fit = {};
};

/// Some rows of a weight.
struct Part {
  uint32_t weight;
  uint32_t first, count;
  SharedFit* fit;
  PackError error = {};
};

class Parts {
 public:
  Parts(const Graph& graph, const MatrixInputs& inputs) {
    for (const auto& [index, weight] : graph.weights) {
      const schema::TensorT& tensor = graph.tensor(index);
      const auto known = inputs.of.find(tensor.name);
      SharedFit* fit = nullptr;
      if (known != inputs.of.end() && can_be_fitted(tensor)) fit = &fit_of(known->second, weight);
      const uint32_t step =
          packs_in_parts(tensor.type) ? rows_at_once(weight.width()) : weight.rows();
      for (uint32_t first = 0; first < weight.rows(); first += step) {
        list_.push_back({index, first, std::min(step, weight.rows() - first), fit});
        if (fit != nullptr) ++fit->parts;
      }
    }
    // What shares a Fit comes together, so that few are there at a time.
    std::map<const SharedFit*, uint32_t> place;
    for (const Part& part : list_) place.try_emplace(part.fit, part.weight);
    std::stable_sort(list_.begin(), list_.end(), [&](const Part& a, const Part& b) {
      const auto key = [&](const Part& p) { return p.fit == nullptr ? p.weight : place[p.fit]; };
      return key(a) < key(b);
    });
  }

  std::vector<Part>& list() { return list_; }

 private:
  SharedFit& fit_of(const std::set<std::string>& inputs, const Weight& matrix) {
    for (SharedFit& fit : fits_) {
      if (fit.inputs == inputs && fit.matrix.changes_inputs_as(matrix)) return fit;
    }
    return fits_.emplace_back(inputs, matrix);
  }

  std::list<SharedFit> fits_;
  std::vector<Part> list_;
};

/// A part is packed as a weight of its own; its elements and its scales then go to where they belong.
void pack_part(const Graph& graph, const MatrixInputs& inputs, Part& part, const WriteData& write) {
  SharedFit* const shared = part.fit;
  if (shared != nullptr) {
    std::call_once(shared->once, [&] {
      shared->fit = std::make_unique<Fit>(inputs, shared->inputs, shared->matrix);
    });
  }
  const schema::TensorT& whole = graph.tensor(part.weight);
  schema::TensorT tensor = whole;
  tensor.rows = part.count;
  const auto elements = [&](uint32_t rows) {
    return element_bytes(static_cast<DataType>(whole.type), static_cast<Layout>(whole.layout), rows,
                         whole.width);
  };
  const size_t scale_bytes = size_t{whole.scale_groups} * sizeof(float);
  std::vector<std::byte> bytes(elements(part.count) + part.count * scale_bytes);
  part.error = pack_weight(tensor, graph.weights.at(part.weight).read(part.first, part.count),
                           shared == nullptr ? nullptr : shared->fit.get(), bytes.data());
  if (shared != nullptr && --shared->parts == 0) shared->fit.reset();
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

WeightErrors pack(const Graph& graph, const WriteData& write, const MatrixInputs& inputs,
                  const std::function<void(uint64_t bytes)>& done) {
  Parts all(graph, inputs);
  std::vector<Part>& parts = all.list();
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) pack_part(graph, inputs, parts[i], write);
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
    pack_part(graph, inputs, parts[i], write);
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
