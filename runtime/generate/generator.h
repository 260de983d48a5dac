#pragma once

// Prompt in, text out: the inside of oxb_generator, which oxbow.h documents.
//
//   text, messages ──▶ PromptText ──▶ tokens ──▶ segment ──▶ session ──▶ logits ──▶ masks ──▶ sampler ──▶ token
//                                                   ▲                                                      │
//                                                   └──────────────────────────────────────────────────────┤
//                                                              text ◀── StopTexts ◀── Decoder ◀────────────┘
//
// Tokens wait in the segment until it is full or the next token is wanted. So between two calls there are never logits
// to keep: the stream, the segment and a few numbers are the whole state (generator_state.cc).
//
//   memory:  oxb_generator | encoder | decoder | sampler | logits | segment | buffers | stop texts | undo states

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/generate/chat.h"
#include "runtime/generate/constraint.h"
#include "runtime/generate/prompt_text.h"
#include "runtime/generate/sampler.h"
#include "runtime/generate/stop_texts.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "runtime/text/decoder.h"

/// Options as the inside takes them: nothing is null or zero that stands for something else.
struct GeneratorSettings {
  oxb_generator_options options;
  oxb_sampler_options sampling;
};

struct oxb_generator {
 public:
  static oxbow::Status measure(const oxbow::Session& session, const GeneratorSettings& settings,
                               size_t* bytes, oxbow::Error* error);
  static oxbow::Status place(oxbow::Session& session, const GeneratorSettings& settings,
                             void* memory, size_t bytes, oxb_generator** generator,
                             oxbow::Error* error);

  oxbow::Status add_text(std::span<const char> text, oxbow::Error* error);
  oxbow::Status add_tokens(std::span<const int32_t> tokens, oxbow::Error* error);
  oxbow::Status add_message(int32_t role, std::span<const char> text, oxbow::Error* error);
  oxbow::Status undo(oxbow::Error* error);

  oxbow::Status next(oxb_piece* piece, oxbow::Error* error);
  void cancel() { cancel_.store(true, std::memory_order_relaxed); }
  void reset();
  oxb_generation progress() const;
  const oxbow::Model& model() const { return *session_.model; }

  oxbow::Status set_constraint(int32_t kind, oxbow::Error* error);
  oxbow::Status set_choices(std::span<const char* const> texts, oxbow::Error* error);

  size_t state_bytes() const;
  oxbow::Status save(oxbow::StateForm form, std::span<std::byte> state, oxbow::Error* error);
  oxbow::Status load(oxbow::StateForm form, std::span<const std::byte> state, oxbow::Error* error);

 private:
  struct Layout;
  struct Head;

  oxb_generator(oxbow::Session& session, const GeneratorSettings& settings)
      : session_(session), settings_(settings) {}
  const oxbow::Tokenizer& tokenizer() const { return session_.model->tokenizer; }
  oxbow::Status need_tokenizer(oxbow::Error* error) const;

  /// Drops what belongs to a stream that somebody else has moved.
  void follow_session();
  void forget_text();
  void begin_prompt();
  oxbow::Status close_text(oxbow::Error* error);
  static bool take_token(void* self, int32_t token, oxbow::Status* status, oxbow::Error* error);
  /// False, with the cancellation noted: no more is wanted.
  bool push(int32_t token, oxbow::Status* status, oxbow::Error* error);
  oxbow::Status feed(float* logits, oxbow::Error* error);
  oxbow::Status check_literal(std::span<const char> text, oxbow::Error* error) const;

  int32_t first_token();
  oxbow::Status mask(oxbow::Error* error);
  oxbow::Status pick(int32_t* token, oxbow::Error* error);
  oxbow::Status take_picked(int32_t token, oxb_piece* piece, oxbow::Error* error);
  /// The text's last piece.
  void end_text(int32_t end, oxb_piece* piece);
  void show(size_t bytes, oxb_piece* piece);

  std::span<std::byte> undo_state(uint64_t index) const;

  oxbow::Session& session_;
  const GeneratorSettings settings_;
  oxb_encoder* encoder_ = nullptr;
  oxb_decoder* decoder_ = nullptr;
  oxb_sampler* sampler_ = nullptr;
  std::span<float> logits_;
  /// Tokens that were not fed yet, and how many there are.
  std::span<int32_t> segment_;
  size_t segment_count_ = 0;
  /// Of one token.
  std::span<char> token_text_;
  std::span<char> held_text_;
  std::span<std::byte> undo_states_;
  oxbow::PromptText prompt_;
  oxbow::StopTexts stop_;
  oxbow::Chat chat_;
  oxbow::Constraint constraint_;
  std::atomic<bool> cancel_{false};

  /// The session's position when it was last used here.
  uint64_t position_ = 0;
  /// A text was begun and has not ended.
  bool writing_ = false;
  /// A prompt is being added, and was cancelled.
  bool prompting_ = false;
  bool prompt_cancelled_ = false;
  /// Bytes of the held text that the last piece showed.
  size_t shown_ = 0;
  int32_t end_ = OXB_END_NONE;
  uint64_t tokens_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t prompt_nanoseconds_ = 0;
  uint64_t token_nanoseconds_ = 0;
  /// Turns that can be taken back, and where the next goes in the ring of their states.
  uint64_t undo_count_ = 0;
  uint64_t undo_next_ = 0;
};
