#pragma once

// The graph while it is being made: the schema's own object types, plus the float values of
// weights. Importers fill it with GraphBuilder; passes rewrite it; the writer turns it into a file.
//
// Until the quantise pass every tensor but the tokens is F32 and row-major; until the plan pass no
// tensor has an offset.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

struct Graph {
  schema::ModelT model;
  /// Float values of each weight, by tensor index, rows x width.
  std::map<uint32_t, std::vector<float>> weights;
  /// Activations worth looking at when results differ: what --debug-outputs keeps.
  std::vector<uint32_t> debug_outputs;
  /// What the user should know of, one line each.
  std::vector<std::string> warnings;

  schema::EntryPointT& entry() { return *model.entry_points.at(0); }
  const schema::EntryPointT& entry() const { return *model.entry_points.at(0); }
  schema::TensorT& tensor(uint32_t index) { return *model.tensors.at(index); }
  const schema::TensorT& tensor(uint32_t index) const { return *model.tensors.at(index); }
};

/// What the user asked of an importer.
struct ImportOptions {
  /// Most tokens of one run; 0: what the importer finds best for this checkpoint.
  uint32_t max_segment = 0;
};

/// Steps and tensors in the words of model descriptions. All methods return tensor indices.
class GraphBuilder {
 public:
  /// Starts a graph with the symbols "tokens" and "logits_rows", a tokens input and one entry
  /// point. The graph must outlive the builder.
  GraphBuilder(Graph& graph, const std::string& entry_name, uint32_t max_segment,
               uint32_t vocabulary);

  uint32_t tokens() const { return tokens_; }

  uint32_t symbol(const std::string& name, uint32_t max);
  uint32_t ring(const std::string& name, uint32_t capacity);
  uint32_t weight(const std::string& name, uint32_t rows, uint32_t width,
                  std::vector<float> values);
  /// A state whose rows move in `ring`.
  uint32_t ring_state(const std::string& name, uint32_t ring, uint32_t width);

  uint32_t embedding(const std::string& name, uint32_t table, float scale = 1.0f);
  uint32_t layer_norm(const std::string& name, uint32_t x, uint32_t weight, uint32_t bias,
                      float epsilon);
  /// `bias` may be kNone.
  uint32_t linear(const std::string& name, uint32_t x, uint32_t weight, uint32_t bias);
  uint32_t activate(const std::string& name, uint32_t x, schema::Activation activation);
  uint32_t add(const std::string& name, uint32_t a, uint32_t b);

  struct Source {
    uint32_t k, v;
  };
  struct Relative {
    uint32_t table, bias, query_bias;
  };
  /// `sources` from the oldest to this run's own tokens. `relative` may be null.
  uint32_t attention(const std::string& name, uint32_t q, const std::vector<Source>& sources,
                     uint32_t heads, uint32_t kv_heads, float scale, const Relative* relative);

  /// Groups of `group` rows that leave the ring of `memory` when `rows` are pushed next.
  uint32_t ring_evict(const std::string& name, uint32_t rows, uint32_t memory, uint32_t group,
                      uint32_t groups_symbol);
  void ring_push(const std::vector<uint32_t>& rows, const std::vector<uint32_t>& states,
                 uint32_t group = 1);
  uint32_t pool(const std::string& name, uint32_t x, uint32_t group, schema::Pooling pooling);

  /// Offers an activation to --debug-outputs.
  void debug_output(uint32_t x) { graph_.debug_outputs.push_back(x); }

  /// The last rows that the caller wants logits of.
  uint32_t take_rows(const std::string& name, uint32_t x);
  /// The head: writes the entry point's logits.
  void logits(uint32_t x, uint32_t weight, uint32_t bias);

  static constexpr uint32_t kNone = UINT32_MAX;

 private:
  uint32_t tensor(const std::string& name, schema::TensorKind kind, uint32_t rows, uint32_t width);
  void linear_step(uint32_t x, uint32_t weight, uint32_t bias, uint32_t y);
  uint32_t activation(const std::string& name, int32_t rows_symbol, uint32_t width);
  schema::StepT& step(schema::OpCode op, std::vector<uint32_t> inputs,
                      std::vector<uint32_t> outputs);

  Graph& graph_;
  uint32_t tokens_ = 0;
  uint32_t tokens_symbol_ = 0;
  uint32_t logits_symbol_ = 0;
};

}  // namespace oxbow::convert
