#include "converter/formats/onnx.h"

#include <algorithm>
#include <bit>

#include "converter/formats/protobuf.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = ProtoField::Kind;

// Far above any model's; an empty one takes two bytes of a file and a hundred of memory.
constexpr size_t kMaxNodes = size_t{1} << 18;
constexpr size_t kMaxInitialisers = size_t{1} << 18;
// Constants that are stored number by number are shapes and the like.
constexpr size_t kMaxListed = 4096;

struct TypeRow {
  uint64_t number;
  Dtype dtype;
};
constexpr TypeRow kTypes[] = {
    {1, Dtype::kF32}, {2, Dtype::kU8},   {3, Dtype::kI8},   {5, Dtype::kI16},  {6, Dtype::kI32},
    {7, Dtype::kI64}, {9, Dtype::kBool}, {10, Dtype::kF16}, {11, Dtype::kF64}, {16, Dtype::kBF16},
};

Bytes message(const std::string& where, const ProtoField& field) {
  if (field.kind != Kind::kBytes) {
    throw InputError(where + ": field " + std::to_string(field.number) +
                     " is a number, expected a text or a message; is this an ONNX file?");
  }
  return field.bytes;
}

std::string text(const std::string& where, const ProtoField& field) {
  message(where, field);
  return std::string(field.text());
}

OnnxTensor read_tensor(const std::string& path, Bytes bytes) {
  OnnxTensor tensor;
  std::vector<int64_t> dims, listed;
  uint64_t type = 0;
  bool is_elsewhere = false, is_listed = false;
  std::vector<Bytes> data;
  const std::string inside = path + ": a tensor";
  ProtoReader reader(inside, bytes);
  for (ProtoField field; reader.next(&field);) {
    switch (field.number) {
      case 1:
        append_numbers(inside, field, dims);
        break;
      case 2:
        type = field.value;
        break;
      case 4:   // float_data
      case 9:   // raw_data
      case 10:  // double_data
        // Packed, these are the bytes of the numbers.
        data.push_back(message(inside, field));
        break;
      case 5:  // int32_data
      case 7:  // int64_data
        is_listed = true;
        if (field.bytes.size() > kMaxListed * 10 || listed.size() > kMaxListed) {
          throw InputError(inside + " stores its numbers one by one; save it with raw_data");
        }
        append_numbers(inside, field, listed);
        break;
      case 8:
        tensor.name = text(inside, field);
        break;
      case 13:
        is_elsewhere = true;
        break;
      case 14:
        is_elsewhere = is_elsewhere || field.value == 1;
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

void read_attribute(const std::string& path, Bytes bytes, OnnxNode& node) {
  const std::string inside = path + ": an attribute";
  std::string name;
  ProtoField number, real, words, value;
  ProtoReader reader(inside, bytes);
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) name = text(inside, field);
    if (field.number == 2) real = field;
    if (field.number == 3) number = field;
    if (field.number == 4) words = field;
    if (field.number == 5) value = field;
  }
  if (real.kind == Kind::kFixed32) {
    node.floats[name] = std::bit_cast<float>(static_cast<uint32_t>(real.value));
  }
  if (number.number != 0 && number.kind == Kind::kNumber) {
    node.integers[name] = static_cast<int64_t>(number.value);
  }
  if (words.number != 0) node.texts[name] = text(inside, words);
  if (value.number != 0 && name == "value") node.value = read_tensor(path, message(inside, value));
}

OnnxNode read_node(const std::string& path, Bytes bytes) {
  OnnxNode node;
  const std::string inside = path + ": an operation";
  ProtoReader reader(inside, bytes);
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) node.inputs.push_back(text(inside, field));
    if (field.number == 2) node.outputs.push_back(text(inside, field));
    if (field.number == 3) node.name = text(inside, field);
    if (field.number == 4) node.op = text(inside, field);
    if (field.number == 5) read_attribute(path, message(inside, field), node);
    if (field.number == 7) node.domain = text(inside, field);
  }
  return node;
}

OnnxGraph read_graph(const std::string& path, Bytes bytes) {
  OnnxGraph graph;
  ProtoReader reader(path, bytes);
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) graph.nodes.push_back(read_node(path, message(path, field)));
    if (field.number == 5) {
      OnnxTensor tensor = read_tensor(path, message(path, field));
      const std::string name = tensor.name;
      if (!graph.initialisers.emplace(name, std::move(tensor)).second) {
        throw InputError(path + ": tensor " + printable(name) + " is there twice");
      }
    }
    if (field.number == 15) throw InputError(path + ": sparse tensors are not supported");
    if (graph.nodes.size() > kMaxNodes || graph.initialisers.size() > kMaxInitialisers) {
      throw InputError(path + " has more operations or tensors than any model");
    }
  }
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
  ProtoReader reader(path, file);
  for (ProtoField field; reader.next(&field);) {
    if (field.number != 7) continue;
    if (graph) throw InputError(path + " has two graphs");
    graph = read_graph(path, message(path, field));
  }
  if (!graph) throw InputError(path + " has no graph; is this an ONNX file?");
  return std::move(*graph);
}

}  // namespace oxbow::convert
