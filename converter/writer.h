#pragma once

// The last step: the finished graph and the packed weights become one file. runtime/model/file_prefix.h
// draws it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "converter/offload/offload.h"
#include "converter/passes/passes.h"
#include "host/temporary_file.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// The bytes of the whole file: prefix, graph, padding, `data`. The graph names the features that it uses, besides
/// those it names already.
std::vector<std::byte> assemble_file(const schema::ModelT& model, std::span<const std::byte> data);

/// The same for a graph that is a finished FlatBuffer.
std::vector<std::byte> frame_graph(std::span<const std::byte> graph,
                                   std::span<const std::byte> data);

/// Writes the bytes of a file all or not at all; the runtime must accept them before they get their
/// name.
void write_model(const std::string& path, std::span<const std::byte> file);

/// A whole file that has no name yet: weights go to it as they are packed, and it can be run from its path.
class DraftFile final : public DataRegion {
 public:
  /// Told how many bytes of all are done.
  using Progress = std::function<void(uint64_t done, uint64_t all)>;

  /// Gives the weights of a graph that is planned their places; all are zero. `target` is what it is to become.
  DraftFile(const std::string& target, Graph& graph);

  /// `inputs` as convert::pack() takes them.
  void pack(const Graph& graph, const MatrixInputs& inputs, const Progress& progress);

  uint64_t bytes() const override { return data_bytes_; }
  void read(uint64_t offset, std::span<std::byte> bytes) const override;
  uint64_t append(std::span<const std::byte> bytes) override;
  /// In place of what is there.
  void write(uint64_t offset, std::span<const std::byte> bytes);

  const std::string& path() const { return file_->path(); }
  const WeightErrors& errors() const { return errors_; }

  /// Makes it the target, once the runtime has accepted it. `model` is the graph's, with what has been learnt since.
  void finish(const schema::ModelT& model);

 private:
  std::string target_;
  std::unique_ptr<TemporaryFile> file_;
  uint64_t data_offset_ = 0, data_bytes_ = 0;
  WeightErrors errors_;
};

}  // namespace oxbow::convert
