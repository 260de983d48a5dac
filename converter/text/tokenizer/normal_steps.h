#pragma once

// The normalizers of a tokenizer.json, in their order, as steps for the runtime (runtime/text/normalizer.h).

#include <memory>
#include <string>
#include <vector>

#include "converter/text/tokenizer/normal_form.h"
#include "converter/text/tokenizer/tokenizer_json.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

class NormalSteps {
 public:
  explicit NormalSteps(const TokenizerJson& in) : in_(in) {}

  /// Throws InputError for what is not known.
  void add(const nlohmann::json& part);
  /// A space or its mark before each text, unless one is there.
  void add_before_text(const std::string& text);
  void replace(const SplitPattern& pattern, const std::string& content);

  /// When a normal form is all there is: it, without any step.
  bool is_form() const { return done_.empty(); }
  const NormalForm& form() const { return form_; }
  /// Whether letters may become others.
  bool changes_letters() const { return changes_letters_; }
  std::vector<std::unique_ptr<schema::NormalStepT>> take();

 private:
  void add_bert(const nlohmann::json& part);
  void add_map(const std::map<std::string, std::string>& texts);
  void add_precompiled(const nlohmann::json& part);
  void end_form();
  schema::NormalStepT& append();

  const TokenizerJson& in_;
  std::vector<std::unique_ptr<schema::NormalStepT>> done_;
  /// What is not in `done_` yet.
  NormalForm form_;
  bool changes_letters_ = false;
};

}  // namespace oxbow::convert
