#pragma once

// What a model file says about text: its tokenizer, and how text is generated. Read once from the
// checkpoint and put into every graph that is built.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "converter/formats/checkpoint.h"
#include "converter/graph.h"
#include "converter/text/tokenizer/find.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

class ModelTexts {
 public:
  /// `tokenizer` is what --tokenizer says: empty to look in the checkpoint, "none" for none. The
  /// checkpoint outlives this. `files`: names in its folder that were read elsewhere.
  ModelTexts(const Checkpoint& checkpoint, std::string tokenizer, std::set<std::string> files = {})
      : checkpoint_(checkpoint), source_(std::move(tokenizer)), files_(std::move(files)) {}

  /// Completes a graph. The first call reads the files; all graphs are of the same model. Throws
  /// InputError.
  void apply(Graph& graph);

  /// What was found and what was left out, after the first apply().
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  FoundTokenizer find(const Graph& graph) const;
  void read(const Graph& graph);
  void apply_generation(Graph& graph, bool first);
  void note_unread_files();

  const Checkpoint& checkpoint_;
  std::string source_;
  bool read_ = false;
  /// Null: none.
  std::unique_ptr<schema::TokenizerT> tokenizer_;
  std::vector<std::string> notes_;
  std::vector<std::string> warnings_;
  /// Of the checkpoint's folder, without it.
  std::set<std::string> files_;
};

}  // namespace oxbow::convert
