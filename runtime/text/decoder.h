#pragma once

// Token ids to text, a token at a time: the inside of oxb_decoder, which oxbow.h documents. A token
// may be part of a character; the part waits until the rest is there, and becomes U+FFFD when
// something else comes.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace oxbow {

/// Collects bytes and gives out whole characters only.
class CharacterWriter {
 public:
  /// Bytes that `bytes` more can become: each may be malformed, and so may those that wait.
  static constexpr size_t most(size_t bytes) { return 3 * (bytes + 3); }

  /// Where characters go from now on. `room` is enough for most() of what is added.
  void start(std::span<char> room) {
    room_ = room;
    written_ = 0;
  }
  void add(std::span<const char> bytes);
  void add(char byte);
  /// What waits is not a character any more.
  void flush();
  /// From now on each byte that is part of no character becomes U+FFFD, not each run of bytes that
  /// begin one.
  void replace_each_byte() { replace_each_byte_ = true; }
  size_t written() const { return written_; }
  /// Part of a character that is held back.
  std::span<const char> waiting() const { return {waiting_, held_}; }
  /// Restores what waiting() gave; `bytes` are those of a character that is not whole.
  void wait_for(std::span<const char> bytes);
  bool replaces_each_byte() const { return replace_each_byte_; }

 private:
  void put(std::span<const char> bytes);

  std::span<char> room_;
  size_t written_ = 0;
  char waiting_[4] = {};
  size_t held_ = 0;
  bool replace_each_byte_ = false;
};

/// What the functions of a kind work on.
struct DecoderState {
  const Tokenizer* tokenizer = nullptr;
  CharacterWriter out;
  /// No token came yet.
  bool text_start = true;
  /// The text is empty so far, and no space before it was left out.
  bool leading = true;
};

}  // namespace oxbow

struct oxb_decoder {
 public:
  static oxbow::Status place(const oxbow::Tokenizer& tokenizer, const oxb_decoder_options& options,
                             void* memory, size_t bytes, oxb_decoder** decoder,
                             oxbow::Error* error);
  static size_t bytes();
  /// Bytes that a token becomes at most.
  size_t most_text() const { return most_text(*state_.tokenizer); }
  static size_t most_text(const oxbow::Tokenizer& tokenizer);

  oxbow::Status run(int32_t id, std::span<char> text, size_t* count, oxbow::Error* error);
  /// What the token would give now: whole characters in `text`, which has room for most_text(), and the part of one
  /// that would then wait, at most three bytes. Changes nothing.
  struct Preview {
    std::span<const char> text;
    char waiting[4] = {};
    size_t waiting_count = 0;
  };
  Preview preview(uint32_t token, std::span<char> text) const;

  /// What a text under way consists of, to save it: plain data.
  struct Saved {
    char waiting[4] = {};
    uint8_t waiting_count = 0;
    uint8_t replace_each_byte = 0;
    uint8_t text_start = 1;
    uint8_t leading = 1;
  };
  Saved save() const;
  oxbow::Status load(const Saved& saved, oxbow::Error* error);

  /// The text ends; the next token begins another.
  oxbow::Status finish(std::span<char> text, size_t* count, oxbow::Error* error);

 private:
  oxb_decoder() = default;
  bool gives_text(uint32_t token) const;

  oxb_decoder_options options_;
  oxbow::DecoderState state_;
};
