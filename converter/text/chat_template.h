#pragma once

// The chat template of a checkpoint, reduced to what a chat of one question needs: the text before
// it and the text behind it. Templates are programs in Jinja; converter/jinja runs the part of the
// language that they use.

#include <map>
#include <string>

namespace oxbow::convert {

struct ChatTexts {
  std::string before, after;
};

/// Renders the template for one message of the user, with what makes the model answer
/// (add_generation_prompt), and splits around the message. `special_tokens` are names that the
/// template may use: bos_token, eos_token, ... Throws InputError, with the line, for what is not
/// supported and where the message does not appear as it is.
ChatTexts render_chat(const std::string& chat_template,
                      const std::map<std::string, std::string>& special_tokens);

}  // namespace oxbow::convert
