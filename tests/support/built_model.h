#pragma once

// A model of a few steps, made with the converter's GraphBuilder instead of from a checkpoint.

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "converter/passes/passes.h"
#include "converter/testing/pack_all.h"
#include "converter/writer.h"
#include "runtime/api/oxbow.hpp"

namespace oxbow::testing {

/// All passes, for float or int8, and the file's bytes.
inline std::vector<std::byte> build_file(convert::Graph& graph, bool int8 = false) {
  graph.model.metadata = std::make_unique<schema::MetadataT>();
  graph.model.metadata->architecture = "test";
  // What gives no logits of its tokens does not generate.
  const schema::EntryPointT& entry = graph.main_entry();
  if (graph.tensor(entry.logits).width != graph.tensor(entry.tokens).limit) {
    graph.model.task = schema::Task::Encode;
  }
  convert::fuse(graph);
  convert::remove_dead(graph, false);
  convert::quantize(graph, {.weights = int8 ? "int8" : "f32", .activations = int8});
  convert::plan(graph);
  return convert::assemble_file(graph.model, pack_all(graph).data);
}

/// Such a file, opened.
class BuiltModel {
 public:
  explicit BuiltModel(const std::vector<std::byte>& file) : blocks_((file.size() + 63) / 64) {
    std::memcpy(blocks_.data(), file.data(), file.size());
    oxb::Expected<oxb::Model> opened = oxb::Model::open(
        std::span(reinterpret_cast<const std::byte*>(blocks_.data()), file.size()));
    status_ = opened.status();
    if (opened) model_.emplace(std::move(*opened));
  }

  const oxb::Status& status() const { return status_; }
  const oxb::Model& model() const {
    if (!model_) throw std::runtime_error(status_.text());
    return *model_;
  }
  oxb::Session session(const oxb::Session* lender = nullptr, uint32_t threads = 1) const {
    oxb::SessionOptions options;
    options.threads = threads;
    if (lender != nullptr) options.lender = lender->get();
    oxb::Expected<oxb::Session> made = oxb::Session::create(model(), options);
    if (!made) throw std::runtime_error(made.status().text());
    return std::move(*made);
  }

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::vector<Block> blocks_;
  oxb::Status status_;
  std::optional<oxb::Model> model_;
};

/// A state, kept activation or further output by its name; nothing when there is none.
inline std::optional<std::vector<float>> read_tensor(const oxb::Session& session,
                                                     const std::string& name) {
  for (size_t i = 0; i < session.tensor_count(); ++i) {
    const oxb::Expected<oxb_tensor_info> info = session.tensor_info(i);
    if (!info || name != info->name) continue;
    std::vector<float> values(size_t{info->rows} * info->width);
    const oxb::Status status = session.tensor_read(i, values);
    if (!status.ok()) throw std::runtime_error(status.text());
    return values;
  }
  return std::nullopt;
}

}  // namespace oxbow::testing
