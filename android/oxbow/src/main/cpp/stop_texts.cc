#include "android/oxbow/src/main/cpp/stop_texts.h"

#include <algorithm>
#include <cstring>

namespace oxbow::jni {

void StopTexts::start(const char* words, const int32_t* lengths, size_t count, char* held) {
  words_ = words;
  lengths_ = lengths;
  count_ = count;
  held_ = held;
  size_ = 0;
  reached_ = false;
}

size_t StopTexts::add(const char* piece, size_t bytes) {
  if (reached_) return 0;
  std::memcpy(held_ + size_, piece, bytes);
  size_ += bytes;
  // Where an end begins that may become a word.
  size_t shown = size_;
  for (size_t at = 0; at < size_; ++at) {
    const char* word = words_;
    for (size_t i = 0; i < count_; word += lengths_[i++]) {
      const auto length = static_cast<size_t>(lengths_[i]);
      const size_t there = std::min(length, size_ - at);
      if (std::memcmp(held_ + at, word, there) != 0) continue;
      if (there == length) {
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
  std::memmove(held_, held_ + bytes, size_);
}

}  // namespace oxbow::jni
