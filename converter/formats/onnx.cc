#include "converter/formats/onnx.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "converter/formats/protobuf.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using Bytes = std::span<const std::byte>;

// Far above any model's; an empty one takes two bytes of a file and a hundred of memory.
constexpr size_t kMaxNodes = size_t{1} << 18;
constexpr size_t kMaxInitialisers = size_t{1} << 18;
// Constants that are stored number by number are shapes and the like.
constexpr size_t kMaxListed = 4096;
constexpr size_t kMaxDimensions = 64;

struct TypeRow {
  uint64_t number;
  Dtype dtype;
};
constexpr TypeRow kTypes[] = {
    {1, Dtype::kF32}, {2, Dtype::kU8},   {3, Dtype::kI8},   {5, Dtype::kI16},  {6, Dtype::kI32},
    {7, Dtype::kI64}, {9, Dtype::kBool}, {10, Dtype::kF16}, {11, Dtype::kF64}, {16, Dtype::kBF16},
};

OnnxTensor read_tensor(const std::string& path, ProtobufReader reader) {
  OnnxTensor tensor;
  std::vector<int64_t> dims, listed;
  uint64_t type = 0;
  bool is_elsewhere = false, is_listed = false;
  std::vector<Bytes> data;
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        if (!reader.integers(dims, kMaxDimensions))
          reader.refuse("more dimensions than any tensor");
        break;
      case 2:
        type = reader.integer();
        break;
      case 4:   // float_data
      case 9:   // raw_data
      case 10:  // double_data
        // Packed, these are the bytes of the numbers.
        data.push_back(std::as_bytes(std::span(reader.bytes())));
        break;
      case 5:  // int32_data
      case 7:  // int64_data
        is_listed = true;
        if (!reader.integers(listed, kMaxListed)) {
          reader.refuse("numbers of a tensor are stored one by one; save it with raw_data");
        }
        break;
      case 8:
        tensor.name = reader.bytes();
        break;
      case 13:
        is_elsewhere = true;
        break;
      case 14:
        is_elsewhere = is_elsewhere || reader.integer() == 1;
        break;
      default:
        break;
    }
  }
  const std::string where = path + ": tensor " + printable(tensor.name);
  if (is_elsewhere) {
    throw InputError(where + " is in another file (external data); save the model as one file");
  }
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& r) { return r.number == type; });
  if (row == std::end(kTypes)) {
    throw InputError(where + " has the type " + std::to_string(type) +
                     ", expected numbers of at most 64 bits");
  }
  std::vector<uint64_t> shape;
  for (const int64_t size : dims) {
    if (size < 0) throw InputError(where + " has a negative size");
    shape.push_back(static_cast<uint64_t>(size));
  }
  if (is_listed) {
    tensor.stored.dtype = row->dtype;
    tensor.stored.shape = std::move(shape);
    tensor.stored.count = listed.size();
    uint64_t count = 1;
    for (const uint64_t size : tensor.stored.shape) {
      count = size > kMaxListed ? kMaxListed + 1 : std::min(count * size, kMaxListed + 1);
    }
    if (!data.empty() || is_float(row->dtype) || count != listed.size()) {
      throw InputError(where + " is " + tensor.stored.describe() + " with " +
                       std::to_string(listed.size()) +
                       " numbers, one by one; save it with raw_data");
    }
    tensor.listed = std::move(listed);
    return tensor;
  }
  if (data.size() > 1) throw InputError(where + " has its numbers in several pieces");
  tensor.stored =
      view_of(where, row->dtype, std::move(shape), {}, 0, data.empty() ? Bytes() : data[0]);
  if (const size_t stored = data.empty() ? 0 : data[0].size();
      stored != tensor.stored.packed_bytes()) {
    throw InputError(where + " is " + tensor.stored.describe() + ", which takes " +
                     std::to_string(tensor.stored.packed_bytes()) + " bytes, and has " +
                     std::to_string(stored));
  }
  return tensor;
}

void read_attribute(const std::string& path, ProtobufReader reader, OnnxNode& node) {
  std::string name;
  std::optional<float> real;
  std::optional<int64_t> number;
  std::optional<std::string> words;
  std::optional<ProtobufReader> value;
  while (reader.next()) {
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() == 2) real = reader.floating();
    if (reader.field() == 3) number = static_cast<int64_t>(reader.integer());
    if (reader.field() == 4) words = reader.bytes();
    if (reader.field() == 5) value = reader.message();
  }
  if (real) node.floats[name] = *real;
  if (number) node.integers[name] = *number;
  if (words) node.texts[name] = *words;
  if (value && name == "value") node.value = read_tensor(path, *value);
}

OnnxNode read_node(const std::string& path, ProtobufReader reader) {
  OnnxNode node;
  while (reader.next()) {
    if (reader.field() == 1) node.inputs.emplace_back(reader.bytes());
    if (reader.field() == 2) node.outputs.emplace_back(reader.bytes());
    if (reader.field() == 3) node.name = reader.bytes();
    if (reader.field() == 4) node.op = reader.bytes();
    if (reader.field() == 5) read_attribute(path, reader.message(), node);
    if (reader.field() == 7) node.domain = reader.bytes();
  }
  return node;
}

/// Each name is made once, as the format demands: who follows names through the graph takes no way twice.
void check_outputs(const std::string& path, const OnnxGraph& graph) {
  std::unordered_set<std::string_view> made;
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) {
      // An output that nobody wants has no name.
      if (output.empty() || made.insert(output).second) continue;
      throw InputError(path + ": two operations make " + printable(output));
    }
  }
}

OnnxGraph read_graph(const std::string& path, ProtobufReader reader) {
  OnnxGraph graph;
  while (reader.next()) {
    if (reader.field() == 1) graph.nodes.push_back(read_node(path, reader.message()));
    if (reader.field() == 5) {
      OnnxTensor tensor = read_tensor(path, reader.message());
      const std::string name = tensor.name;
      if (!graph.initialisers.emplace(name, std::move(tensor)).second) {
        throw InputError(path + ": tensor " + printable(name) + " is there twice");
      }
    }
    if (reader.field() == 15) throw InputError(path + ": sparse tensors are not supported");
    if (graph.nodes.size() > kMaxNodes || graph.initialisers.size() > kMaxInitialisers) {
      throw InputError(path + " has more operations or tensors than any model");
    }
  }
  check_outputs(path, graph);
  return graph;
}

}  // namespace

std::vector<int64_t> OnnxTensor::integers() const {
  if (!listed.empty()) return listed;
  return is_float(stored.dtype) ? std::vector<int64_t>() : to_integers(stored);
}

std::optional<double> OnnxTensor::number() const {
  if (stored.count != 1) return std::nullopt;
  if (is_float(stored.dtype)) return static_cast<double>(to_floats(stored)[0]);
  return static_cast<double>(integers()[0]);
}

OnnxGraph read_onnx(const std::string& path, Bytes file) {
  std::optional<OnnxGraph> graph;
  ProtobufReader reader(path, {reinterpret_cast<const char*>(file.data()), file.size()});
  while (reader.next()) {
    if (reader.field() != 7) continue;
    if (graph) throw InputError(path + " has two graphs");
    graph = read_graph(path, reader.message());
  }
  if (!graph) throw InputError(path + " has no graph; is this an ONNX file?");
  return std::move(*graph);
}

}  // namespace oxbow::convert
