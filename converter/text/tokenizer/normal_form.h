#pragma once

// The tables of Unicode's normal forms for the runtime (runtime/text/normalizer.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/text/tokenizer/unicode.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// What is done with a text, in this order.
struct NormalForm {
  enum class Decompose { kNone, kCanonical, kCompatible };
  Decompose decompose = Decompose::kNone;
  bool compose = false;
  /// Marks (\p{Mn}) are left out, or all of \p{M}.
  bool strip_accents = false;
  bool strip_marks = false;
  bool lower_case = false;
  /// Before each text.
  std::string prefix;
  bool prefix_unless_space = false;
  /// What is malformed becomes U+FFFD, as it does by any of the others.
  bool repairs = false;

  bool empty() const {
    return decompose == Decompose::kNone && !strip_accents && !strip_marks && !lower_case &&
           prefix.empty() && !repairs;
  }
};

/// NFC.
inline NormalForm composed_form() {
  NormalForm form;
  form.decompose = NormalForm::Decompose::kCanonical;
  form.compose = true;
  return form;
}

/// Texts of single characters and what they become.
std::unique_ptr<schema::CharMapT> make_char_map(const std::map<std::string, std::string>& texts);

/// The tables of a form, and the classes of characters it needs with those of `rules`.
struct FormTables {
  std::unique_ptr<schema::NormalizationT> form;
  std::unique_ptr<schema::CharClassesT> classes;
};
FormTables make_form(const NormalForm& form, std::vector<ClassRule> rules);

/// Fills `normalization` and the classes of characters; `rules` are the other classes that the tokenizer needs.
void write_normal_form(const NormalForm& form, std::vector<ClassRule> rules,
                       schema::TokenizerT& tokenizer);

}  // namespace oxbow::convert
