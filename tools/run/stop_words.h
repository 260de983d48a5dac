#pragma once

// Words before which a text ends, however the text is cut into pieces.

#include <string>
#include <string_view>
#include <vector>

namespace oxbow::tools {

class StopWords {
 public:
  /// None of them is empty.
  explicit StopWords(std::vector<std::string> words) : words_(std::move(words)) {}

  /// What can be shown now that `text` came: neither a stop word or what follows it, nor an end
  /// that may become one.
  std::string add(std::string_view text);
  /// The text ended: what was held back is no stop word.
  std::string finish();
  bool reached() const { return reached_; }

 private:
  std::vector<std::string> words_;
  std::string held_;
  bool reached_ = false;
};

}  // namespace oxbow::tools
