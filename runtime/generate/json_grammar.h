#pragma once

// The grammar of JSON (RFC 8259), a byte at a time and in a few bytes of memory: what may follow what was written. White
// space is allowed where the grammar has it, but only so much in a row, lest a model writes nothing else for ever.

#include <cstdint>
#include <span>

namespace oxbow {

/// Plain data: copied to try what a token would do, and saved with a generator.
class JsonGrammar {
 public:
  static constexpr uint8_t kMaxDepth = 64;
  static constexpr uint8_t kMaxSpaces = 64;

  /// `object_only`: the value is an object.
  void start(bool object_only);
  /// False: the byte cannot come here, and nothing more is to be asked of this copy.
  bool step(char byte);
  bool steps(std::span<const char> text) {
    for (const char byte : text) {
      if (!step(byte)) return false;
    }
    return true;
  }
  /// What was written is a whole value.
  bool complete() const { return mode_ == Mode::kDone || (depth_ == 0 && number_can_end()); }
  /// Nothing can follow it.
  bool closed() const { return mode_ == Mode::kDone; }
  /// Of a copy from outside: it is one that start() and step() can make.
  bool sound() const;

 private:
  enum class Mode : uint8_t {
    kObject,  // The value, which must be an object.
    kValue,
    kFirstItem,
    kFirstKey,
    kKey,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kHex,
    kLiteral,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kDone,
  };

  bool begin_value(char byte);
  bool open(bool object);
  bool close(bool object);
  void end_value() { mode_ = depth_ == 0 ? Mode::kDone : Mode::kAfterValue; }
  bool step_number(char byte);
  bool number_can_end() const;
  bool in_object() const { return (objects_ >> (depth_ - 1) & 1) != 0; }

  /// Bit d: what is open at depth d + 1 is an object.
  uint64_t objects_ = 0;
  Mode mode_ = Mode::kDone;
  uint8_t depth_ = 0;
  /// In a row.
  uint8_t spaces_ = 0;
  /// Hex digits of an escape, or letters of a literal, that came; and which literal.
  uint8_t count_ = 0;
  uint8_t literal_ = 0;
  /// The string is a key.
  uint8_t key_ = 0;
  [[maybe_unused]] uint8_t unused_[2] = {};
};
static_assert(sizeof(JsonGrammar) == 16);

}  // namespace oxbow
