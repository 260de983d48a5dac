#pragma once

// Text on its way to tokens: calls bring any part of it, and the encoder must see some way ahead, so the last part waits
// in a buffer.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/encoder.h"

namespace oxbow {

class PromptText {
 public:
  /// Who gets the tokens. False, without a failure: no more are wanted.
  using Sink = bool (*)(void* context, int32_t token, Status* status, Error* error);

  static size_t buffer_bytes(const Tokenizer& tokenizer, size_t max_word_bytes);
  void place(oxb_encoder* encoder, std::span<char> buffer) {
    encoder_ = encoder;
    buffer_ = buffer;
  }

  /// A text is under way.
  bool open() const { return open_; }
  void begin(oxb_encoder::Beginning beginning, bool parse_special);
  /// Gives the sink the tokens that do not depend on what follows.
  Status add(std::span<const char> text, Sink sink, void* context, Error* error);
  /// The text is over: gives the rest.
  Status finish(Sink sink, void* context, Error* error);
  void drop();

 private:
  Status encode(bool last, Sink sink, void* context, Error* error);

  oxb_encoder* encoder_ = nullptr;
  std::span<char> buffer_;
  size_t filled_ = 0;
  bool open_ = false;
};

}  // namespace oxbow
