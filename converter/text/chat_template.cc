#include "converter/text/chat_template.h"

#include <span>

#include "converter/text/jinja/evaluator.h"
#include "converter/text/jinja/parser.h"
#include "host/errors.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

using jinja::Value;

// Two messages that have nothing in common, and in the second what a template could escape, split
// or take for something else.
constexpr const char* kMessages[] = {"Where does the Old River end?",
                                     "{\"oxbow\": ['<LAKE>',\n  \"& \\ {{ %}\"]}"};

void check_utf8(const std::string& text, const std::string& what) {
  for (std::span<const char> rest = text; !rest.empty();) {
    const Utf8Character character = read_utf8(rest);
    if (character.kind != Utf8Character::Kind::kCharacter) {
      throw InputError(what + " is not UTF-8 at byte " + std::to_string(text.size() - rest.size()));
    }
    rest = rest.subspan(character.bytes);
  }
}

std::string render(const jinja::Body& body, const std::string& message,
                   const std::map<std::string, std::string>& special_tokens) {
  jinja::Meter meter;
  std::map<std::string, Value> names;
  for (const auto& [name, text] : special_tokens) names[name] = make_text(meter, text);
  const Value turn = make_dict(
      meter, {{"role", make_text(meter, "user")}, {"content", make_text(meter, message)}});
  names["messages"] = make_list(meter, {turn});
  names["add_generation_prompt"] = true;
  // The original sets these to none when there are none.
  names["tools"] = jinja::None{};
  names["documents"] = jinja::None{};
  return jinja::run(body, std::move(names), meter);
}

ChatTexts split(const std::string& text, const std::string& message) {
  const size_t at = text.find(message);
  if (at == text.npos || text.find(message, at + 1) != text.npos) {
    throw InputError("chat template: the template does not show the message as it is, once");
  }
  return {text.substr(0, at), text.substr(at + message.size())};
}

}  // namespace

ChatTexts render_chat(const std::string& chat_template,
                      const std::map<std::string, std::string>& special_tokens) {
  if (chat_template.size() > jinja::kMaxTemplateBytes) {
    throw InputError("chat template: " + std::to_string(chat_template.size()) +
                     " bytes, expected up to " + std::to_string(jinja::kMaxTemplateBytes));
  }
  check_utf8(chat_template, "chat template: the text");
  for (const auto& [name, text] : special_tokens) check_utf8(text, "chat template: " + name);

  const jinja::Body body = jinja::parse_template(chat_template);
  const ChatTexts out = split(render(body, kMessages[0], special_tokens), kMessages[0]);
  const ChatTexts other = split(render(body, kMessages[1], special_tokens), kMessages[1]);
  if (out.before != other.before || out.after != other.after) {
    throw InputError("chat template: what stands around the message depends on the message");
  }
  return out;
}

}  // namespace oxbow::convert
