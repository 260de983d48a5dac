#include "runtime/generate/constraint.h"

#include <cstring>

#include "runtime/base/hash.h"

namespace oxbow {

Status Constraint::set_choices(std::span<const char* const> texts, Error* error) {
  if (texts.empty()) {
    return fail(error, Status::kInvalidArgument, "choices: there are none; expected 1 or more");
  }
  uint64_t hash = kHashSeed;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] == nullptr || texts[i][0] == '\0') {
      return fail(error, Status::kInvalidArgument, "choice %zu: the text is empty", i);
    }
    hash = hash_bytes(texts[i], std::strlen(texts[i]) + 1, hash);
  }
  clear();
  choices_ = texts;
  saved_.kind = ConstraintKind::kChoices;
  saved_.hash = hash;
  return Status::kOk;
}

void Constraint::set_json(bool object_only) {
  clear();
  saved_.kind = object_only ? ConstraintKind::kJsonObject : ConstraintKind::kJson;
  start();
}

void Constraint::start() {
  saved_.choice = saved_.done = 0;
  saved_.json.start(saved_.kind == ConstraintKind::kJsonObject);
}

bool Constraint::begins(size_t choice, std::span<const char> text,
                        std::span<const char> waiting) const {
  const auto done = static_cast<size_t>(saved_.done);
  // The first is at least that long, so an equal one is too.
  if (std::strncmp(choices_[saved_.choice], choices_[choice], done) != 0) return false;
  const char* rest = choices_[choice] + done;
  const auto same = [&](const char* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i, ++rest) {
      if (*rest == '\0' || *rest != bytes[i]) return false;
    }
    return true;
  };
  return same(text.data(), text.size()) && same(waiting.data(), waiting.size());
}

bool Constraint::accepts(std::span<const char> text, std::span<const char> waiting) const {
  if (saved_.kind == ConstraintKind::kChoices) {
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (begins(i, text, waiting)) return true;
    }
    return false;
  }
  JsonGrammar json = saved_.json;
  return json.steps(text) && json.steps(waiting);
}

void Constraint::advance(std::span<const char> text) {
  if (saved_.kind != ConstraintKind::kChoices) {
    saved_.json.steps(text);
    return;
  }
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (!begins(i, text, {})) continue;
    saved_.choice = i;
    saved_.done += text.size();
    // The one that is complete, if there is one, is what was chosen so far.
    for (size_t other = i; other < choices_.size(); ++other) {
      if (begins(other, {}, {}) && choices_[other][saved_.done] == '\0') {
        saved_.choice = other;
        break;
      }
    }
    return;
  }
}

bool Constraint::complete() const {
  if (saved_.kind != ConstraintKind::kChoices) return saved_.json.complete();
  return choices_[saved_.choice][saved_.done] == '\0';
}

bool Constraint::closed() const {
  if (saved_.kind != ConstraintKind::kChoices) return saved_.json.closed();
  if (!complete()) return false;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (begins(i, {}, {}) && choices_[i][saved_.done] != '\0') return false;
  }
  return true;
}

Status Constraint::load(const Saved& saved, Error* error) {
  if (saved.kind != saved_.kind || saved.hash != saved_.hash) {
    return fail(error, Status::kStateMismatch,
                "generator state: saved with another constraint; set the same one before loading");
  }
  bool sound = saved.json.sound();
  if (saved.kind == ConstraintKind::kChoices) {
    sound = sound && saved.choice < choices_.size() &&
            saved.done <= std::strlen(choices_[saved.choice]);
  }
  if (!sound) {
    return fail(error, Status::kStateCorrupt, "generator state: the constraint is out of range");
  }
  saved_ = saved;
  return Status::kOk;
}

}  // namespace oxbow
