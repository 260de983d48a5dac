#pragma once

// Times among the tokens of a text, as Whisper writes them: <|0.00|> what was said <|1.20|><|1.20|> what came next. The
// rules are those of Hugging Face's WhisperTimeStampLogitsProcessor:
//
//   - a text begins with a time, not later than the last initial one;
//   - times come in pairs, one that ends and one that begins, or one before the end of the text; none is earlier than one
//     before it, and a beginning may be the same as the end in front of it;
//   - where all times together are likelier than any other token, it is a time.

#include <cstdint>
#include <span>

namespace oxbow {

struct TimestampRules {
  /// The first of the tokens that are times, up to the end of the vocabulary; -1: there are none.
  int32_t first = -1;
  /// Says in a prompt that there are none; -1: nothing does.
  int32_t none = -1;
  /// Tokens behind `first`.
  uint32_t last_initial = UINT32_MAX;
  int32_t end_token = -1;

  /// Whether they hold for what follows a prompt.
  bool hold(std::span<const int32_t> prompt) const;
};

/// What the rules need to know of a text: a part of the state of whoever writes it.
class TextTimes {
 public:
  void add(const TimestampRules& rules, int32_t token);
  /// Gives -inf to the logarithms of probabilities of what must not come next.
  void forbid(const TimestampRules& rules, std::span<float> logarithms) const;

 private:
  bool empty_ = true;
  /// Whether the last token was a time, and the one before it or nothing at all.
  bool last_ = false, before_ = true;
  /// The last time; -1: none yet.
  int32_t time_ = -1;
};

}  // namespace oxbow
