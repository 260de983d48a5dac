#include "tools/run/stop_words.h"

#include <algorithm>
#include <utility>

namespace oxbow::tools {

std::string StopWords::add(std::string_view text) {
  if (reached_) return {};
  held_ += text;
  size_t end = std::string::npos;
  for (const std::string& word : words_) end = std::min(end, held_.find(word));
  if (end != std::string::npos) {
    reached_ = true;
    held_.resize(end);
    return std::exchange(held_, {});
  }
  // The longest end of the text that a word begins with.
  size_t keep = 0;
  for (const std::string& word : words_) {
    size_t length = std::min(word.size() - 1, held_.size());
    while (length > keep && !std::string_view(held_).ends_with(word.substr(0, length))) --length;
    keep = std::max(keep, length);
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopWords::finish() { return std::exchange(held_, {}); }

}  // namespace oxbow::tools
