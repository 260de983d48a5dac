#include "runtime/generate/chat.h"

#include "schema/model_generated.h"

namespace oxbow {
namespace {

std::span<const char> view(const flatbuffers::String* text) {
  if (text == nullptr) return {};
  return {text->data(), text->size()};
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::span<const char> trimmed(std::span<const char> text) {
  while (!text.empty() && is_space(text.front())) text = text.subspan(1);
  while (!text.empty() && is_space(text.back())) text = text.first(text.size() - 1);
  return text;
}

}  // namespace

bool Chat::known(const Tokenizer& tokenizer) {
  return tokenizer.table != nullptr &&
         (tokenizer.table->chat_before() != nullptr || tokenizer.table->chat_after() != nullptr);
}

Status Chat::message(const Tokenizer& tokenizer, int32_t role, std::span<const char> text,
                     ChatMessage* message, Error* error) const {
  const auto refuse = [&](const char* why) {
    return fail(error, Status::kInvalidArgument, "chat: %s", why);
  };
  if (!known(tokenizer)) {
    return refuse(
        "the file does not say how to ask the model: it was not trained to answer, or was "
        "converted without its chat template");
  }
  if (role < 0 || role > static_cast<int32_t>(ChatRole::kAssistant)) {
    return fail(error, Status::kInvalidArgument, "chat: no role has the number %d", role);
  }
  const schema::Tokenizer& table = *tokenizer.table;
  *message = {};
  message->text = (table.chat_trims() >> role & 1) != 0 ? trimmed(text) : text;
  switch (static_cast<ChatRole>(role)) {
    case ChatRole::kSystem:
      if (phase_ != Phase::kNone) return refuse("the system's text comes before all others");
      if (table.chat_system_before() == nullptr) {
        return refuse("this model's chats have no text of the system");
      }
      message->before = view(table.chat_system_before());
      return Status::kOk;
    case ChatRole::kUser:
      if (phase_ == Phase::kQuestion) return refuse("a question waits for its answer");
      if (phase_ == Phase::kAnswered && table.chat_next() == nullptr) {
        return refuse(
            "this model's template does not say what follows an answer: reset before the next "
            "question");
      }
      message->before = view(phase_ == Phase::kSystem     ? table.chat_system_after()
                             : phase_ == Phase::kAnswered ? table.chat_next()
                                                          : table.chat_before());
      message->after = view(table.chat_after());
      return Status::kOk;
    case ChatRole::kAssistant:
      if (phase_ != Phase::kQuestion) return refuse("an answer without a question");
      message->before = view(table.chat_answer());
      return Status::kOk;
  }
  return Status::kOk;
}

void Chat::said(int32_t role) {
  phase_ = role == static_cast<int32_t>(ChatRole::kSystem) ? Phase::kSystem
           : role == static_cast<int32_t>(ChatRole::kUser) ? Phase::kQuestion
                                                           : Phase::kAnswered;
}

}  // namespace oxbow
