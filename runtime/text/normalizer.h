#pragma once

// What is done with text before it is cut, by the tables of the file (schema tables Normalization and NormalStep): one
// step after the other, each with a buffer that the caller gives.
//
//   text ──▶ step ──▶ buffer ──▶ step ──▶ buffer ──▶ ... ──▶ words
//
//   a normal form:  decompose ──▶ segment: a character and the marks on it, in order ──▶ compose ──▶ replace

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/pattern.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/tables/char_map.h"
#include "schema/model_generated.h"

namespace oxbow {

/// The tables of a step, verified.
struct NormalTables {
  enum class Kind : uint8_t { kForm, kPattern, kMap, kStrip };
  Kind kind = Kind::kForm;
  CharClasses classes;
  /// Form.
  const schema::Normalization* form = nullptr;
  CharMap decompose;
  CharMap compose;
  CharMap replace;
  /// Pattern, and what becomes of what it holds.
  PatternSet pattern;
  std::span<const char> content;
  /// Map.
  CharMap map;
  bool clusters = false;
  /// Strip.
  bool strip_left = false;
  bool strip_right = false;
};

inline constexpr size_t kMaxNormalSteps = 12;

/// The last two verify the tables of a file. `classes` are those of the tokenizer.
Status open_form(const schema::Normalization& form, const CharClasses& classes,
                 NormalTables* tables, Error* error);
Status open_step(const schema::NormalStep& step, NormalTables* tables, Error* error);

/// One step.
class TextStep {
 public:
  /// Bytes the buffer must have beyond those that are wanted in it.
  static constexpr size_t kSlack = 4096;

  void place(const NormalTables& tables, std::span<char> buffer) {
    tables_ = &tables;
    buffer_ = buffer;
    begin();
  }
  /// A text begins, or a part of it behind an added token.
  void begin();

  /// Takes as much text as there is room for and tells how many bytes. `last`: nothing follows `text`.
  size_t take(std::span<const char> text, bool last);
  /// What was made of it and not dropped yet.
  std::span<const char> text() const { return buffer_.subspan(dropped_, filled_ - dropped_); }
  /// The text has ended, and all of it is in text().
  bool complete() const { return complete_; }
  bool full() const { return buffer_.size() - filled_ < kSlack; }
  void drop(size_t bytes);

 private:
  /// Unicode's stream-safe text has 30 marks in a row at most. More than these are put in order apart.
  static constexpr size_t kMaxSegment = 64;

  /// A character of a text, with U+FFFD for what is malformed; none of its bytes: more must be seen.
  struct Character {
    uint32_t code_point = 0;
    size_t bytes = 0;
    std::span<const char> text;
  };
  static Character read(std::span<const char> text, bool last);

  size_t take_form(std::span<const char> text, bool last);
  size_t take_pattern(std::span<const char> text, bool last);
  size_t take_map(std::span<const char> text, bool last);
  size_t take_strip(std::span<const char> text, bool last);
  size_t cluster_bytes(std::span<const char> text, bool last) const;

  void add_decomposed(uint32_t code_point, std::span<const char> character);
  void add(uint32_t code_point);
  void compose_segment();
  void flush();
  void make_room();
  void put(std::span<const char> bytes);
  uint8_t order_of(uint32_t code_point) const;
  bool compose(uint32_t first, uint32_t second, uint32_t* joined) const;

  const NormalTables* tables_ = nullptr;
  std::span<char> buffer_;
  size_t filled_ = 0;
  size_t dropped_ = 0;
  bool begun_ = false;
  bool complete_ = false;
  /// Map: the marks that follow belong to something too long to be looked up at once.
  bool long_cluster_ = false;
  PatternState cutting_;
  uint32_t segment_[kMaxSegment];
  uint8_t orders_[kMaxSegment];
  size_t count_ = 0;
};

/// All of them.
class TextNormalizer {
 public:
  /// Bytes for `steps` of them whose last buffer has `bytes` and the slack.
  static size_t memory_bytes(size_t steps, size_t bytes);
  /// `memory` is aligned for anything and has memory_bytes().
  void place(std::span<const NormalTables> tables, std::byte* memory, size_t bytes);

  bool empty() const { return steps_.empty(); }
  void begin();
  size_t take(std::span<const char> text, bool last);
  std::span<const char> text() const { return steps_.back().text(); }
  bool complete() const { return steps_.back().complete(); }
  bool full() const { return steps_.back().full(); }
  void drop(size_t bytes) { steps_.back().drop(bytes); }

 private:
  std::span<TextStep> steps_;
};

}  // namespace oxbow
