#pragma once

// The chat template of a checkpoint, compiled to the few texts that stand between messages. Templates are programs in
// Jinja; converter/text/jinja runs the part of the language that they use.
//
//   before | question | after | lead | answer | next | question | after | lead | answer | next | ...
//   system_before | system's text | system_after | question | after | ...
//
// A stream cannot change what it has read, so these texts are all of a template that the runtime can follow. A template
// that is not such a row of texts, for it leaves out or changes earlier messages, gets as much of it as is true.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace oxbow::convert {

/// Bits of ChatTexts::trims and schema Tokenizer.chat_trims.
enum ChatRole : uint8_t { kChatSystem = 1, kChatUser = 2, kChatAssistant = 4 };

struct ChatTexts {
  std::string before, after;
  /// Missing: why, in `next_note`.
  std::optional<std::string> next;
  /// With `next`: white space before an answer, of which a model that is asked for one writes its own.
  std::string lead;
  std::string next_note;
  /// Both or none, with why in `system_note`.
  std::optional<std::string> system_before, system_after;
  std::string system_note;
  /// Roles whose messages lose the white space around them.
  uint8_t trims = 0;
};

/// Renders the template for chats of a few messages, with what makes the model answer (add_generation_prompt), and
/// splits around the messages. `special_tokens` are names that the template may use: bos_token, eos_token, ... Throws
/// InputError, with the line, for what is not supported and where one question does not appear as it is.
ChatTexts render_chat(const std::string& chat_template,
                      const std::map<std::string, std::string>& special_tokens);

}  // namespace oxbow::convert
