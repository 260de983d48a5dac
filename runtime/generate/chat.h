#pragma once

// Which texts of the model's chat template stand before and behind a message, given what was said before. The converter
// has compiled the template to five texts (converter/text/chat_template.h); here they are only walked.

#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace oxbow {

/// Values are those of oxbow.h.
enum class ChatRole : int32_t { kSystem = 0, kUser = 1, kAssistant = 2 };

/// A message as it is fed: three texts, each of which may be empty.
struct ChatMessage {
  std::span<const char> before;
  std::span<const char> text;
  std::span<const char> after;
};

class Chat {
 public:
  enum class Phase : int32_t {
    kNone,      // No message yet: the stream may hold a plain text.
    kSystem,    // The system's text was said.
    kQuestion,  // The model is to answer.
    kAnswered,  // It has, or the application has said what it answered.
  };

  /// Whether the model was trained to answer.
  static bool known(const Tokenizer& tokenizer);

  Phase phase() const { return phase_; }
  void set_phase(Phase phase) { phase_ = phase; }
  /// The texts of a message; the phase changes when said() is called.
  Status message(const Tokenizer& tokenizer, int32_t role, std::span<const char> text,
                 ChatMessage* message, Error* error) const;
  void said(int32_t role);

 private:
  Phase phase_ = Phase::kNone;
};

}  // namespace oxbow
