// The settings of an encoder from its ONNX graph: sizes are those of the tensors; heads, the norms'
// epsilon and the activation are constants and operations of the graph.

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "converter/formats/limits.h"
#include "converter/formats/model_type.h"
#include "converter/formats/onnx_model.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// The shortest number that a float is the nearest to, as people write it.
double as_written(float value) {
  char text[64] = {};
  std::to_chars(text, text + sizeof(text) - 1, value);
  return std::strtod(text, nullptr);
}

class Deriver {
 public:
  Deriver(const std::string& path, const OnnxGraph& graph, const TensorMap& tensors)
      : path_(path), graph_(graph), tensors_(tensors) {
    for (const OnnxNode& node : graph.nodes) {
      for (const std::string& output : node.outputs) makers_.emplace(output, &node);
    }
  }

  nlohmann::json run() {
    const std::string type =
        model_type_of([&](const std::string& name) { return tensors_.contains(name); });
    // Those whose positions are counted over what is no padding have BERT's names too.
    if (type != "bert" || count("CumSum") != 0) {
      fail("its tensors are not those of a BERT");
    }
    prefix_ = tensors_.contains("bert.embeddings.word_embeddings.weight") ? "bert." : "";
    const std::vector<uint64_t> words = shape("embeddings.word_embeddings.weight");
    uint64_t layers = 0;
    const auto layer = [&](uint64_t i) {
      return "encoder.layer." + std::to_string(i) + ".intermediate.dense.weight";
    };
    while (layers <= kMaxLayers && tensors_.contains(prefix_ + layer(layers))) ++layers;
    if (layers == 0) fail("it has no layers");
    return {{"model_type", type},
            {"vocab_size", words[0]},
            {"hidden_size", words[1]},
            {"intermediate_size", shape(layer(0))[0]},
            {"num_hidden_layers", layers},
            {"num_attention_heads", heads(words[1])},
            {"max_position_embeddings", shape("embeddings.position_embeddings.weight")[0]},
            {"type_vocab_size", shape("embeddings.token_type_embeddings.weight")[0]},
            {"layer_norm_eps", epsilon()},
            {"hidden_act", activation(layers)}};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(path_ + ": " + what + "; put the model's config.json beside it");
  }

  size_t count(const std::string& op) const {
    return static_cast<size_t>(std::count_if(graph_.nodes.begin(), graph_.nodes.end(),
                                             [&](const OnnxNode& n) { return n.op == op; }));
  }

  std::vector<uint64_t> shape(const std::string& name) const {
    const auto found = tensors_.find(prefix_ + name);
    if (found == tensors_.end() || found->second.shape.size() != 2) {
      fail("tensor " + prefix_ + name + " is missing or no matrix");
    }
    return found->second.shape;
  }

  const OnnxNode* maker(const std::string& name) const {
    const auto found = makers_.find(name);
    return found == makers_.end() ? nullptr : found->second;
  }

  /// A constant of the graph, in either of the two places they can be; null: none.
  const OnnxTensor* constant(const std::string& name) const {
    const auto stored = graph_.initialisers.find(name);
    if (stored != graph_.initialisers.end()) return &stored->second;
    const OnnxNode* node = maker(name);
    return node != nullptr && node->op == "Constant" && node->value ? &*node->value : nullptr;
  }

  /// The shape of `rank` sizes that a Reshape is told, with -1 for what is only known when it runs. Nothing if it has
  /// another rank: what many of them are told is looked at for each.
  std::vector<int64_t> told_shape(const std::string& name, size_t rank) const {
    std::vector<int64_t> out;
    if (const OnnxTensor* whole = constant(name)) {
      return whole->stored.count == rank ? whole->integers() : out;
    }
    const OnnxNode* concat = maker(name);
    if (concat == nullptr || concat->op != "Concat" || concat->inputs.size() != rank) return out;
    for (const std::string& input : concat->inputs) {
      const OnnxTensor* part = constant(input);
      const std::optional<double> number = part == nullptr ? std::nullopt : part->number();
      out.push_back(number ? static_cast<int64_t>(*number) : -1);
    }
    return out;
  }

  /// Rows of the width are told to be [texts, tokens, heads, width of a head].
  uint64_t heads(uint64_t width) const {
    std::set<uint64_t> found;
    for (const OnnxNode& node : graph_.nodes) {
      if (node.op != "Reshape" || node.inputs.size() < 2) continue;
      const std::vector<int64_t> told = told_shape(node.inputs[1], 4);
      if (told.size() != 4) continue;
      const int64_t count = told[2], each = told[3];
      const bool good = count > 0 && each > 0 && static_cast<uint64_t>(count) <= width &&
                        static_cast<uint64_t>(each) <= width;
      if (good && static_cast<uint64_t>(count) * static_cast<uint64_t>(each) == width) {
        found.insert(static_cast<uint64_t>(count));
      }
    }
    if (found.size() != 1) fail("the number of attention heads cannot be told from its graph");
    return *found.begin();
  }

  double epsilon() const {
    std::set<double> found;
    for (const OnnxNode& node : graph_.nodes) {
      if (node.op == "LayerNormalization") {
        const auto value = node.floats.find("epsilon");
        found.insert(as_written(value == node.floats.end() ? 1e-5f : value->second));
      }
      // sqrt(variance + epsilon)
      if (node.op != "Sqrt" || node.inputs.size() != 1) continue;
      const OnnxNode* sum = maker(node.inputs[0]);
      if (sum == nullptr || sum->op != "Add" || sum->inputs.size() != 2) continue;
      for (const std::string& input : sum->inputs) {
        const OnnxTensor* value = constant(input);
        if (value != nullptr && value->number()) {
          found.insert(as_written(static_cast<float>(*value->number())));
        }
      }
    }
    if (found.size() != 1) fail("the epsilon of its norms cannot be told from its graph");
    return *found.begin();
  }

  std::string activation(uint64_t layers) const {
    std::set<std::string> found;
    if (count("Erf") >= layers) found.insert("gelu");
    if (count("Relu") >= layers) found.insert("relu");
    // The pooler has one too.
    if (layers > 1 && count("Tanh") >= layers) found.insert("gelu_new");
    for (const OnnxNode& node : graph_.nodes) {
      if (node.op != "Gelu") continue;
      const auto kind = node.texts.find("approximate");
      found.insert(kind != node.texts.end() && kind->second == "tanh" ? "gelu_new" : "gelu");
    }
    if (found.size() != 1) fail("its activation cannot be told from its graph");
    return *found.begin();
  }

  const std::string& path_;
  const OnnxGraph& graph_;
  const TensorMap& tensors_;
  std::map<std::string, const OnnxNode*> makers_;
  std::string prefix_;
};

}  // namespace

nlohmann::json derive_onnx_config(const std::string& path, const OnnxGraph& graph,
                                  const TensorMap& tensors) {
  return Deriver(path, graph, tensors).run();
}

}  // namespace oxbow::convert
