#include "converter/formats/onnx_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "converter/formats/limits.h"
#include "converter/formats/model_type.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// What the exporters of other libraries put before all names.
constexpr std::string_view kWrappers[] = {"0.auto_model.", "auto_model.", "module.", "model."};
constexpr std::string_view kQuantised[] = {"QuantizeLinear",        "DequantizeLinear",
                                           "DynamicQuantizeLinear", "MatMulInteger",
                                           "QLinearMatMul",         "MatMulNBits"};

using Users = std::multimap<std::string, const OnnxNode*>;

Users users_of(const OnnxGraph& graph) {
  Users users;
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) users.emplace(input, &node);
  }
  return users;
}

void refuse_others(const std::string& path, const OnnxGraph& graph) {
  for (const OnnxNode& node : graph.nodes) {
    const bool is_quantised =
        std::find(std::begin(kQuantised), std::end(kQuantised), node.op) != std::end(kQuantised);
    if (is_quantised) {
      throw InputError(path + " is quantised (it has " + node.op +
                       "); convert the float file it was made from, which is quantised here");
    }
    if (!node.domain.empty() && node.domain != "ai.onnx") {
      throw InputError(path + " has the operation " + printable(node.op) + " of " +
                       printable(node.domain) +
                       ": it was optimised for one program; convert the file it was made from");
    }
  }
}

/// "…dense" of "…dense.bias", if a tensor of this name is there; else nothing.
std::string base_of_bias(const OnnxGraph& graph, const std::string& name) {
  constexpr std::string_view kEnding = ".bias";
  if (!name.ends_with(kEnding) || !graph.initialisers.contains(name)) return "";
  return name.substr(0, name.size() - kEnding.size());
}

/// "encoder.layer.0.output.dense" of "/encoder/layer.0/output/dense/MatMul"; else nothing.
std::string base_of_path(const std::string& name) {
  const size_t last = name.rfind('/');
  if (last == std::string::npos || last == 0) return "";
  std::string base = name.substr(name[0] == '/' ? 1 : 0, last - (name[0] == '/' ? 1 : 0));
  std::replace(base.begin(), base.end(), '/', '.');
  return base;
}

/// The layer whose matrix a product takes: by the bias that is added to it, or by its own path.
std::string layer_of(const OnnxGraph& graph, const Users& users, const OnnxNode& product) {
  if (product.op == "Gemm" && product.inputs.size() > 2) {
    if (const std::string base = base_of_bias(graph, product.inputs[2]); !base.empty()) return base;
  }
  if (!product.outputs.empty()) {
    const auto [first, last] = users.equal_range(product.outputs[0]);
    for (auto user = first; user != last; ++user) {
      if (user->second->op != "Add" || user->second->inputs.size() != 2) continue;
      for (const std::string& input : user->second->inputs) {
        if (const std::string base = base_of_bias(graph, input); !base.empty()) return base;
      }
    }
  }
  return base_of_path(product.name);
}

std::string without_wrapper(const std::string& name) {
  for (const std::string_view wrapper : kWrappers) {
    if (name.starts_with(wrapper)) return name.substr(wrapper.size());
  }
  return name;
}

/// Rows become columns.
StoredTensor turned(const std::string& where, const StoredTensor& matrix) {
  const uint64_t rows = matrix.shape[0], width = matrix.shape[1];
  return view_of(where, matrix.dtype, {width, rows}, {1, width}, 0, matrix.bytes);
}

class Namer {
 public:
  Namer(const std::string& path, const OnnxGraph& graph)
      : path_(path), graph_(graph), users_(users_of(graph)) {}

  TensorMap run() {
    std::set<std::string> named;
    for (const OnnxNode& node : graph_.nodes) {
      if (const auto name = add_matrix(node); !name.empty()) named.insert(name);
    }
    for (const auto& [name, tensor] : graph_.initialisers) {
      if (!named.contains(name) && is_weight(tensor)) add(name, tensor.stored);
    }
    // Equal tensors are stored once, and the others are copies by name.
    for (const OnnxNode& node : graph_.nodes) {
      if (node.op != "Identity" || node.inputs.size() != 1 || node.outputs.size() != 1) continue;
      const auto original = graph_.initialisers.find(node.inputs[0]);
      if (original != graph_.initialisers.end() && is_weight(original->second) &&
          is_parameter(node.outputs[0])) {
        add(node.outputs[0], original->second.stored);
      }
    }
    return std::move(tensors_);
  }

 private:
  static bool is_parameter(const std::string& name) {
    return name.ends_with(".weight") || name.ends_with(".bias");
  }

  /// Constants of the graph are single numbers, or integers.
  static bool is_weight(const OnnxTensor& tensor) {
    return is_float(tensor.stored.dtype) && (tensor.stored.count > 1 || is_parameter(tensor.name));
  }

  /// The name of the initialiser that `node` multiplies with, stored inputs first.
  std::string add_matrix(const OnnxNode& node) {
    if ((node.op != "MatMul" && node.op != "Gemm") || node.inputs.size() < 2) return "";
    const auto found = graph_.initialisers.find(node.inputs[1]);
    if (found == graph_.initialisers.end()) return "";
    const StoredTensor& stored = found->second.stored;
    if (!is_float(stored.dtype) || stored.shape.size() != 2 || stored.count == 0) return "";
    const auto turn = node.integers.find("transB");
    const bool outputs_first = turn != node.integers.end() && turn->second != 0;
    std::string name = found->first;
    if (!is_parameter(name)) {
      const std::string layer = layer_of(graph_, users_, node);
      if (layer.empty()) {
        throw InputError(path_ + ": tensor " + printable(name) +
                         " is multiplied with, and nothing tells its name");
      }
      name = layer + ".weight";
    }
    const std::string where = path_ + ": tensor " + printable(found->first);
    add(name, outputs_first ? stored : turned(where, stored));
    return found->first;
  }

  void add(const std::string& name, const StoredTensor& tensor) {
    const std::string plain = without_wrapper(name);
    const auto [place, is_new] = tensors_.emplace(plain, tensor);
    // A layer that is used again uses the same matrix again.
    if (!is_new && (place->second.bytes.data() != tensor.bytes.data() ||
                    place->second.shape != tensor.shape)) {
      throw InputError(path_ + ": two tensors are " + printable(plain));
    }
  }

  const std::string& path_;
  const OnnxGraph& graph_;
  const Users users_;
  TensorMap tensors_;
};

}  // namespace

TensorMap name_onnx_tensors(const std::string& path, const OnnxGraph& graph) {
  refuse_others(path, graph);
  return Namer(path, graph).run();
}

OnnxFile::OnnxFile(const std::string& path) : TensorFile(path) {
  graph_ = read_onnx(path, file_bytes());
  tensors_ = name_onnx_tensors(path, graph_);
}

nlohmann::json OnnxFile::derive_config(std::string* note) const {
  const nlohmann::json config = derive_onnx_config(path(), graph_, tensors_);
  *note = "there is no config.json; by its tensors and operations the model is " +
          config["model_type"].get<std::string>() + " with";
  for (const auto& [key, value] : config.items()) {
    if (key != "model_type") *note += " " + key + " " + value.dump() + ",";
  }
  note->pop_back();
  return config;
}

}  // namespace oxbow::convert
