#pragma once

// Texts before which a generation ends, however its text is cut into pieces. In memory that is given; text goes in and
// comes out in whole characters.

#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

class StopTexts {
 public:
  /// `words` follow each other, none of them empty; `held` has room for the longest and the longest piece.
  void place(std::span<const char> words, std::span<const uint32_t> lengths, std::span<char> held) {
    words_ = words;
    lengths_ = lengths;
    held_ = held;
  }
  /// A text begins.
  void start() {
    size_ = 0;
    reached_ = false;
  }

  /// Takes on a piece and tells how many bytes of text() can be shown now: neither a stop text or what follows it, nor
  /// an end that may become one.
  size_t add(std::span<const char> piece);
  /// The text ended: what was held back is no stop text.
  size_t finish() const { return reached_ ? 0 : size_; }
  const char* text() const { return held_.data(); }
  size_t size() const { return size_; }
  /// Forgets the first bytes of text(), which were shown.
  void drop(size_t bytes);
  bool reached() const { return reached_; }

 private:
  std::span<const char> words_;
  std::span<const uint32_t> lengths_;
  std::span<char> held_;
  size_t size_ = 0;
  bool reached_ = false;
};

}  // namespace oxbow
