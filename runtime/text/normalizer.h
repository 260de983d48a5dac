#pragma once

// Unicode's normal forms, and what else is done with text before it is cut, by the tables of the file (schema table
// Normalization). Text goes through a buffer that the caller gives.
//
//   text ──▶ decompose ──▶ segment: a character and the marks on it, in order ──▶ compose ──▶ replace ──▶ buffer

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace oxbow {

class TextNormalizer {
 public:
  /// Bytes the buffer must have beyond those that are wanted in it.
  static constexpr size_t kSlack = 4096;

  void place(const Tokenizer& tokenizer, std::span<char> buffer) {
    tokenizer_ = &tokenizer;
    buffer_ = buffer;
    begin();
  }
  /// A text begins, or a part of it behind an added token.
  void begin();

  /// Takes as much text as there is room for and tells how many bytes. `last`: nothing follows `text`.
  size_t take(std::span<const char> text, bool last);
  /// What was made of it and not dropped yet.
  std::span<const char> text() const { return buffer_.first(filled_); }
  /// The text has ended, and all of it is in text().
  bool complete() const { return complete_; }
  bool full() const { return buffer_.size() - filled_ < kSlack; }
  void drop(size_t bytes);

 private:
  /// Unicode's stream-safe text has 30 marks in a row at most. More than these are put in order apart.
  static constexpr size_t kMaxSegment = 64;

  void add_decomposed(uint32_t code_point, std::span<const char> character);
  void add(uint32_t code_point);
  void compose_segment();
  void flush();
  void put(std::span<const char> bytes);
  uint8_t order_of(uint32_t code_point) const;
  bool compose(uint32_t first, uint32_t second, uint32_t* joined) const;
  const schema::Normalization& table() const { return *tokenizer_->table->normalization(); }

  const Tokenizer* tokenizer_ = nullptr;
  std::span<char> buffer_;
  size_t filled_ = 0;
  bool begun_ = false;
  bool complete_ = false;
  uint32_t segment_[kMaxSegment];
  uint8_t orders_[kMaxSegment];
  size_t count_ = 0;
};

/// Whether the tables of a file hold together.
Status check_normalization(const Tokenizer& tokenizer, Error* error);

}  // namespace oxbow
