#pragma once

// Texts before which a generation ends, however its text is cut into pieces. In memory that is given; text goes in and
// comes out in whole characters.

#include <cstddef>
#include <cstdint>

namespace oxbow::jni {

class StopTexts {
 public:
  /// `words` follow each other, none of them empty; `held` has room for the longest and the longest piece.
  void start(const char* words, const int32_t* lengths, size_t count, char* held);

  /// Takes on a piece and tells how many bytes of text() can be shown now: neither a stop text or what follows it, nor
  /// an end that may become one.
  size_t add(const char* piece, size_t bytes);
  /// The text ended: what was held back is no stop text.
  size_t finish() const { return reached_ ? 0 : size_; }
  const char* text() const { return held_; }
  /// Forgets the first bytes of text(), which were shown.
  void drop(size_t bytes);
  bool reached() const { return reached_; }

 private:
  const char* words_ = nullptr;
  const int32_t* lengths_ = nullptr;
  size_t count_ = 0;
  char* held_ = nullptr;
  size_t size_ = 0;
  bool reached_ = false;
};

}  // namespace oxbow::jni
