#pragma once

// What a model file says about text: its tokenizer, and how text is generated. Read once from the
// checkpoint's folder and put into every graph that is built.

#include <memory>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

class ModelTexts {
 public:
  /// `tokenizer` is what --tokenizer says: empty to look in `directory`, "none" for none.
  ModelTexts(std::string directory, std::string model_type, std::string tokenizer)
      : directory_(std::move(directory)),
        model_type_(std::move(model_type)),
        source_(std::move(tokenizer)) {}

  /// Completes a graph. The first call reads the files; all graphs are of the same model. Throws
  /// InputError.
  void apply(Graph& graph);

  /// What was found and what was left out, after the first apply().
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void read(const Graph& graph);

  std::string directory_;
  std::string model_type_;
  std::string source_;
  bool read_ = false;
  /// Null: none.
  std::unique_ptr<schema::TokenizerT> tokenizer_;
  std::vector<std::string> notes_;
};

}  // namespace oxbow::convert
