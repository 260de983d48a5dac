#include "runtime/generate/stop_texts.h"

#include <algorithm>
#include <cstring>

namespace oxbow {

size_t StopTexts::add(std::span<const char> piece) {
  if (reached_) return 0;
  const size_t bytes = std::min(piece.size(), held_.size() - size_);
  std::copy_n(piece.data(), bytes, held_.data() + size_);
  size_ += bytes;
  // Where an end begins that may become a word.
  size_t shown = size_;
  for (size_t at = 0; at < size_; ++at) {
    const char* word = words_.data();
    for (size_t i = 0; i < lengths_.size(); word += lengths_[i++]) {
      const size_t there = std::min<size_t>(lengths_[i], size_ - at);
      if (std::memcmp(held_.data() + at, word, there) != 0) continue;
      if (there == lengths_[i]) {
        reached_ = true;
        size_ = at;
        return at;
      }
      shown = std::min(shown, at);
    }
  }
  return shown;
}

void StopTexts::drop(size_t bytes) {
  size_ -= bytes;
  if (size_ > 0) std::memmove(held_.data(), held_.data() + bytes, size_);
}

}  // namespace oxbow
