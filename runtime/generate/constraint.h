#pragma once

// What a generated text may be: one of some texts, or JSON. Asked for every token of the vocabulary which text it would
// add; what is refused gets a logit of -inf.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/generate/json_grammar.h"

namespace oxbow {

/// Values are those of oxbow.h.
enum class ConstraintKind : int32_t { kNone = 0, kChoices = 1, kJson = 2, kJsonObject = 3 };

class Constraint {
 public:
  /// What is saved of it: plain data.
  struct Saved {
    ConstraintKind kind = ConstraintKind::kNone;
    uint32_t unused = 0;
    /// Of the choices.
    uint64_t hash = 0;
    uint64_t choice = 0;
    uint64_t done = 0;
    JsonGrammar json;
  };

  void clear() { *this = {}; }
  /// The texts must stay where they are; they are terminated and not empty.
  Status set_choices(std::span<const char* const> texts, Error* error);
  void set_json(bool object_only);

  bool active() const { return saved_.kind != ConstraintKind::kNone; }
  /// A text begins.
  void start();
  /// Whether `text` may come next, and behind it something that begins with `waiting`, part of a character.
  bool accepts(std::span<const char> text, std::span<const char> waiting) const;
  /// `text`, which was accepted, came.
  void advance(std::span<const char> text);
  /// The text may end here.
  bool complete() const;
  /// Nothing may follow.
  bool closed() const;
  /// Which choice the complete text is.
  size_t choice() const { return static_cast<size_t>(saved_.choice); }

  const Saved& saved() const { return saved_; }
  /// Refuses what is not of this constraint.
  Status load(const Saved& saved, Error* error);

 private:
  /// Whether what came and then these bytes begin this choice.
  bool begins(size_t choice, std::span<const char> text, std::span<const char> waiting) const;

  std::span<const char* const> choices_;
  /// All choices that are still possible begin with the first `done` bytes of `choice`.
  Saved saved_;
};

}  // namespace oxbow
