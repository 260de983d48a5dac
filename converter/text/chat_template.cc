#include "converter/text/chat_template.h"

#include <span>
#include <vector>

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

struct Message {
  const char* role;
  std::string text;
};

class Renderer {
 public:
  Renderer(const jinja::Body& body, const std::map<std::string, std::string>& special_tokens)
      : body_(body), special_tokens_(special_tokens) {}

  std::string render(const std::vector<Message>& messages) const {
    jinja::Meter meter;
    std::map<std::string, Value> names;
    for (const auto& [name, text] : special_tokens_) names[name] = make_text(meter, text);
    std::vector<Value> turns;
    for (const Message& message : messages) {
      turns.push_back(make_dict(meter, {{"role", make_text(meter, message.role)},
                                        {"content", make_text(meter, message.text)}}));
    }
    names["messages"] = make_list(meter, std::move(turns));
    names["add_generation_prompt"] = true;
    // The original sets these to none when there are none.
    names["tools"] = jinja::None{};
    names["documents"] = jinja::None{};
    return jinja::run(body_, std::move(names), meter);
  }

 private:
  const jinja::Body& body_;
  const std::map<std::string, std::string>& special_tokens_;
};

ChatTexts split(const std::string& text, const std::string& message) {
  const size_t at = text.find(message);
  if (at == text.npos || text.find(message, at + 1) != text.npos) {
    throw InputError("chat template: the template does not show the message as it is, once");
  }
  ChatTexts out;
  out.before = text.substr(0, at);
  out.after = text.substr(at + message.size());
  return out;
}

/// The chat as the runtime will write it.
std::string written(const ChatTexts& texts, const std::vector<Message>& messages) {
  std::string out;
  std::string gap = texts.before;
  for (const Message& message : messages) {
    const std::string role = message.role;
    if (role == "system") gap = *texts.system_before;
    out += gap + (role == "assistant" ? texts.lead : "") + message.text;
    gap = role == "system" ? *texts.system_after : role == "user" ? texts.after : *texts.next;
  }
  return out + gap;
}

/// Messages of the user and of the assistant in turn, ending with the user's. Those of odd chats are the difficult one.
std::vector<Message> turns(size_t questions, size_t odd, const char* system) {
  std::vector<Message> out;
  if (system != nullptr) out.push_back({"system", system});
  for (size_t i = 0; i < 2 * questions - 1; ++i) {
    out.push_back({i % 2 == 0 ? "user" : "assistant", kMessages[(i + odd) % 2]});
  }
  return out;
}

/// Between the only answer and the question behind it.
void find_next(const Renderer& renderer, ChatTexts* texts) {
  const std::string question = kMessages[0], answer = "Here it ends.", other = "And then?";
  const std::string text =
      renderer.render({{"user", question}, {"assistant", answer}, {"user", other}});
  std::string head = texts->before + question + texts->after;
  const std::string tail = other + texts->after;
  const size_t begin = text.starts_with(head) ? text.find_first_not_of(" \n", head.size()) : 0;
  if (begin != text.npos && begin >= head.size()) {
    texts->lead = text.substr(head.size(), begin - head.size());
    head += texts->lead + answer;
  }
  if (begin == 0 || !text.starts_with(head) || !text.ends_with(tail) ||
      text.size() < head.size() + tail.size()) {
    throw InputError("what was said before is not shown as it was when it was said");
  }
  texts->next = text.substr(head.size(), text.size() - head.size() - tail.size());
  for (const size_t questions : {2, 3, 4}) {
    for (const size_t odd : {0, 1}) {
      const std::vector<Message> chat = turns(questions, odd, nullptr);
      if (renderer.render(chat) != written(*texts, chat)) {
        texts->next.reset();
        throw InputError("what stands between messages depends on them or on their number");
      }
    }
  }
}

void find_system(const Renderer& renderer, ChatTexts* texts) {
  const std::string system = "Speak plainly.", question = kMessages[0];
  const std::string text = renderer.render({{"system", system}, {"user", question}});
  const size_t at = text.find(system);
  const std::string tail = question + texts->after;
  if (at == text.npos || text.find(system, at + 1) != text.npos || !text.ends_with(tail) ||
      text.size() < at + system.size() + tail.size()) {
    throw InputError("the system's text is not shown as it is, once");
  }
  texts->system_before = text.substr(0, at);
  texts->system_after =
      text.substr(at + system.size(), text.size() - at - system.size() - tail.size());
  for (const size_t questions : {1, 2, 3}) {
    if (questions > 1 && !texts->next) break;
    for (const size_t odd : {0, 1}) {
      const std::vector<Message> chat = turns(questions, odd, kMessages[odd]);
      if (renderer.render(chat) != written(*texts, chat)) {
        texts->system_before.reset();
        texts->system_after.reset();
        throw InputError("what stands around the system's text depends on the messages");
      }
    }
  }
}

/// Whether a message of this role loses the white space around it. Anything but all or none of it is taken for none.
void find_trim(const Renderer& renderer, const ChatTexts& texts, ChatRole role, uint8_t* trims) {
  std::vector<Message> spaced =
      turns(role == kChatAssistant ? 2 : 1, 0, role == kChatSystem ? kMessages[1] : nullptr);
  const size_t place = role == kChatAssistant ? 1 : 0;
  const std::string plain = written(texts, spaced);
  spaced[place].text = " \n" + spaced[place].text + "\n ";
  if (renderer.render(spaced) == plain) *trims |= role;
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
  const Renderer renderer(body, special_tokens);
  const auto one = [&](const char* message) {
    return split(renderer.render({{"user", message}}), message);
  };
  ChatTexts out = one(kMessages[0]);
  const ChatTexts other = one(kMessages[1]);
  if (out.before != other.before || out.after != other.after) {
    throw InputError("chat template: what stands around the message depends on the message");
  }
  try {
    find_next(renderer, &out);
  } catch (const InputError& error) {
    out.next_note = error.what();
  }
  try {
    find_system(renderer, &out);
  } catch (const InputError& error) {
    out.system_note = error.what();
  }
  find_trim(renderer, out, kChatUser, &out.trims);
  if (out.next) find_trim(renderer, out, kChatAssistant, &out.trims);
  if (out.system_before) find_trim(renderer, out, kChatSystem, &out.trims);
  return out;
}

}  // namespace oxbow::convert
