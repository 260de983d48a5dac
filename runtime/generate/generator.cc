#include "runtime/generate/generator.h"

#include <algorithm>
#include <limits>

#include "runtime/base/clock.h"
#include "runtime/generate/ends_text.h"
#include "runtime/text/open_tables.h"
#include "schema/model_generated.h"

using oxbow::Error;
using oxbow::fail;
using oxbow::Model;
using oxbow::Session;
using oxbow::Status;

namespace {

class Stopwatch {
 public:
  explicit Stopwatch(uint64_t* total) : total_(total) {}
  ~Stopwatch() { *total_ += oxbow::now_nanoseconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  uint64_t* total_;
  uint64_t start_ = oxbow::now_nanoseconds();
};

}  // namespace

Status oxb_generator::need_tokenizer(Error* error) const {
  if (encoder_ != nullptr) return Status::kOk;
  return fail(error, Status::kInvalidArgument,
              "generator: the model has no tokenizer: convert it with --tokenizer, or add tokens");
}

void oxb_generator::forget_text() {
  prompt_.drop();
  segment_count_ = 0;
  writing_ = prompting_ = prompt_cancelled_ = false;
  shown_ = 0;
  stop_.start();
  constraint_.start();
  chat_ = {};
  undo_count_ = 0;
  if (decoder_ != nullptr) {
    size_t ignored = 0;
    // It has room, so it cannot fail.
    (void)decoder_->finish(token_text_, &ignored, nullptr);
  }
}

void oxb_generator::follow_session() {
  if (session_.header->position == position_ && !session_.needs_reset) return;
  forget_text();
  position_ = session_.header->position;
  sampler_->restart(settings_.sampling.seed);
}

void oxb_generator::reset() {
  oxbow::reset_session(session_);
  forget_text();
  position_ = 0;
  sampler_->restart(settings_.sampling.seed);
  end_ = OXB_END_NONE;
  tokens_ = prompt_tokens_ = prompt_nanoseconds_ = token_nanoseconds_ = 0;
  cancel_.store(false, std::memory_order_relaxed);
}

/// The first of what is added before a text.
void oxb_generator::begin_prompt() {
  follow_session();
  if (prompting_) return;
  prompting_ = true;
  writing_ = false;
  end_ = OXB_END_NONE;
  tokens_ = prompt_tokens_ = prompt_nanoseconds_ = token_nanoseconds_ = 0;
}

Status oxb_generator::feed(float* logits, Error* error) {
  const Model& model = *session_.model;
  const char* name = model.graph->tensors()->Get(model.main_entry().tokens())->name()->c_str();
  const oxbow::InputValues input = {name, segment_.data(), segment_count_};
  const Stopwatch time(writing_ ? &token_nanoseconds_ : &prompt_nanoseconds_);
  const Status status = oxbow::run_session(session_, static_cast<uint32_t>(model.entry_count() - 1),
                                           {&input, 1}, logits, logits == nullptr ? 0 : 1, error);
  position_ = session_.header->position;
  if (status == Status::kOk) segment_count_ = 0;
  return status;
}

bool oxb_generator::push(int32_t token, Status* status, Error* error) {
  // A full segment waits until something follows: the last one must give logits.
  if (segment_count_ == segment_.size()) {
    if (cancel_.load(std::memory_order_relaxed)) {
      prompt_cancelled_ = true;
      return false;
    }
    *status = feed(nullptr, error);
    if (*status != Status::kOk) return false;
  }
  segment_[segment_count_++] = token;
  sampler_->accept(token);
  return true;
}

bool oxb_generator::take_token(void* self, int32_t token, Status* status, Error* error) {
  auto* generator = static_cast<oxb_generator*>(self);
  if (!generator->push(token, status, error)) return false;
  ++generator->prompt_tokens_;
  return true;
}

Status oxb_generator::close_text(Error* error) { return prompt_.finish(take_token, this, error); }

Status oxb_generator::add_text(std::span<const char> text, Error* error) {
  OXB_TRY(need_tokenizer(error));
  begin_prompt();
  // A text that belongs to a message goes on with it.
  if (!prompt_.open() && !prompt_cancelled_) {
    const bool plain = settings_.options.no_template != 0;
    prompt_.begin(plain ? oxb_encoder::Beginning::kPlain : oxb_encoder::Beginning::kTemplate,
                  settings_.options.literal_text == 0);
  }
  return prompt_.add(text, take_token, this, error);
}

Status oxb_generator::add_tokens(std::span<const int32_t> tokens, Error* error) {
  const uint32_t vocabulary = session_.model->vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= vocabulary) {
      return fail(error, Status::kInvalidArgument, "token %zu: %d is not in the vocabulary of %u",
                  i, tokens[i], vocabulary);
    }
  }
  begin_prompt();
  OXB_TRY(close_text(error));
  for (const int32_t token : tokens) {
    Status status = Status::kOk;
    if (prompt_cancelled_ || !take_token(this, token, &status, error)) return status;
  }
  return Status::kOk;
}

/// Where special tokens may not be named, a message with the text of one is refused: the template's own must be read.
Status oxb_generator::check_literal(std::span<const char> text, Error* error) const {
  if (settings_.options.literal_text == 0) return Status::kOk;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    oxbow::Trie::Walk walk = tokenizer().added_trie.walk();
    // The table may lead in circles.
    const size_t end = std::min(text.size(), begin + oxbow::kLongestSpecial);
    for (size_t at = begin; at < end && walk.step(text[at]); ++at) {
      if (!walk.ends() || walk.value() >= tokenizer().pieces) continue;
      // Bytes and characters have no roles: what is added to them is special.
      if (!tokenizer().roles.empty() &&
          tokenizer().role(walk.value()) != oxbow::schema::TokenRole::Special) {
        continue;
      }
      return fail(error, Status::kInvalidArgument,
                  "message, byte %zu: '%.*s' is the text of a special token", begin,
                  static_cast<int>(std::min<size_t>(at + 1 - begin, 40)), text.data() + begin);
    }
  }
  return Status::kOk;
}

Status oxb_generator::add_message(int32_t role, std::span<const char> text, Error* error) {
  OXB_TRY(need_tokenizer(error));
  follow_session();
  oxbow::ChatMessage message;
  OXB_TRY(chat_.message(tokenizer(), role, text, &message, error));
  OXB_TRY(check_literal(message.text, error));
  // A text that is open cannot be kept for later, so what is in it is taken back as one.
  if (!prompt_.open() && settings_.options.undo_turns > 0) {
    OXB_TRY(save(oxbow::StateForm::kCheckpoint, undo_state(undo_next_), error));
    undo_next_ = (undo_next_ + 1) % settings_.options.undo_turns;
    undo_count_ = std::min<uint64_t>(undo_count_ + 1, settings_.options.undo_turns);
  }
  begin_prompt();
  if (prompt_cancelled_) return Status::kOk;
  const bool empty = session_.header->position == 0 && segment_count_ == 0;
  if (!prompt_.open()) {
    prompt_.begin(empty ? oxb_encoder::Beginning::kPlain : oxb_encoder::Beginning::kContinued,
                  true);
  }
  for (const std::span<const char> part : {message.before, message.text, message.after}) {
    OXB_TRY(prompt_.add(part, take_token, this, error));
  }
  chat_.said(role);
  return Status::kOk;
}

std::span<std::byte> oxb_generator::undo_state(uint64_t index) const {
  return undo_states_.subspan(static_cast<size_t>(index) * state_bytes(), state_bytes());
}

Status oxb_generator::undo(Error* error) {
  follow_session();
  if (undo_count_ == 0) {
    return fail(error, Status::kInvalidArgument,
                "undo: no turn is kept; the generator keeps undo_turns = %u of them",
                static_cast<unsigned>(settings_.options.undo_turns));
  }
  const uint64_t turns = settings_.options.undo_turns;
  const uint64_t last = (undo_next_ + turns - 1) % turns, left = undo_count_ - 1;
  OXB_TRY(load(oxbow::StateForm::kCheckpoint, undo_state(last), error));
  undo_next_ = last;
  undo_count_ = left;
  return Status::kOk;
}

/// Where a stream without a prompt begins: at the model's start token, after a line break, or else at the first token.
int32_t oxb_generator::first_token() {
  const auto* generation = session_.model->graph->generation();
  if (generation != nullptr && generation->start_token() >= 0) return generation->start_token();
  if (encoder_ == nullptr) return 0;
  int32_t ids[2] = {};
  oxbow::Encoded encoded;
  encoder_->begin(oxb_encoder::Beginning::kTemplate, true);
  const Status status = encoder_->run(std::span("\n", 1), true, ids, &encoded, nullptr);
  encoder_->reset();
  return status == Status::kOk && encoded.count == 1 ? ids[0] : 0;
}

Status oxb_generator::mask(Error* error) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const Model& model = *session_.model;
  for (size_t id = model.vocabulary; id < logits_.size(); ++id) logits_[id] = kNever;
  const auto* generation = model.graph->generation();
  if (generation != nullptr && generation->forbidden_tokens() != nullptr) {
    for (const int32_t id : *generation->forbidden_tokens()) {
      if (id >= 0 && static_cast<size_t>(id) < logits_.size()) {
        logits_[static_cast<size_t>(id)] = kNever;
      }
    }
  }
  if (!constraint_.active()) return Status::kOk;
  bool any = false;
  for (uint32_t id = 0; id < logits_.size(); ++id) {
    if (logits_[id] == kNever) continue;
    bool allowed = false;
    if (oxbow::ends_text(model, static_cast<int32_t>(id))) {
      allowed = constraint_.complete();
    } else {
      const oxb_decoder::Preview token = decoder_->preview(id, token_text_);
      const std::span<const char> waiting(token.waiting, token.waiting_count);
      // A token without text would change nothing, for ever.
      allowed =
          (!token.text.empty() || !waiting.empty()) && constraint_.accepts(token.text, waiting);
    }
    if (!allowed) logits_[id] = kNever;
    any = any || allowed;
  }
  if (any) return Status::kOk;
  return fail(error, Status::kInvalidArgument,
              "constraint: no token of the vocabulary can go on with the text");
}

Status oxb_generator::pick(int32_t* token, Error* error) {
  if (segment_count_ == 0) {
    if (session_.header->position != 0) {
      return fail(error, Status::kInvalidArgument,
                  "generator: there is nothing to go on from: add a text or a token first");
    }
    segment_[segment_count_++] = first_token();
    sampler_->accept(segment_[0]);
    ++prompt_tokens_;
  }
  OXB_TRY(feed(logits_.data(), error));
  OXB_TRY(mask(error));
  return sampler_->pick(logits_.data(), token, error);
}

Status oxb_generator::set_constraint(int32_t kind, Error* error) {
  if (kind != OXB_CONSTRAINT_NONE) OXB_TRY(need_tokenizer(error));
  switch (kind) {
    case OXB_CONSTRAINT_NONE:
      constraint_.clear();
      return Status::kOk;
    case OXB_CONSTRAINT_JSON:
    case OXB_CONSTRAINT_JSON_OBJECT:
      constraint_.set_json(kind == OXB_CONSTRAINT_JSON_OBJECT);
      return Status::kOk;
    case OXB_CONSTRAINT_CHOICES:
      return fail(error, Status::kInvalidArgument,
                  "constraint: choices are set with oxb_generator_set_choices");
    default:
      return fail(error, Status::kInvalidArgument, "constraint: there is none of number %d", kind);
  }
}

Status oxb_generator::set_choices(std::span<const char* const> texts, Error* error) {
  OXB_TRY(need_tokenizer(error));
  return constraint_.set_choices(texts, error);
}

void oxb_generator::show(size_t bytes, oxb_piece* piece) {
  piece->text = stop_.text();
  piece->text_bytes = shown_ = bytes;
}

void oxb_generator::end_text(int32_t end, oxb_piece* piece) {
  piece->end = end_ = end;
  writing_ = false;
  if (chat_.phase() == oxbow::Chat::Phase::kQuestion) chat_.said(OXB_ROLE_ASSISTANT);
  if (decoder_ == nullptr) return;
  size_t count = 0;
  // It has room, so it cannot fail.
  (void)decoder_->finish(token_text_, &count, nullptr);
  const size_t before = piece->text_bytes;
  size_t shown = stop_.add(token_text_.first(count));
  if (!stop_.reached()) shown = stop_.finish();
  show(std::max(before, shown), piece);
}

Status oxb_generator::take_picked(int32_t token, oxb_piece* piece, Error* error) {
  if (oxbow::ends_text(*session_.model, token)) {
    // What follows an answer begins with the template's own end of it.
    if (chat_.phase() == oxbow::Chat::Phase::kNone) {
      segment_[segment_count_++] = token;
      sampler_->accept(token);
    }
    end_text(OXB_END_OF_TEXT, piece);
    return Status::kOk;
  }
  piece->token = token;
  segment_[segment_count_++] = token;
  sampler_->accept(token);
  ++tokens_;
  if (decoder_ != nullptr) {
    size_t count = 0;
    OXB_TRY(decoder_->run(token, token_text_, &count, error));
    const std::span<const char> text = token_text_.first(count);
    if (constraint_.active()) constraint_.advance(text);
    show(stop_.add(text), piece);
  }
  if (stop_.reached()) {
    end_text(OXB_END_STOP_TEXT, piece);
  } else if (constraint_.active() && constraint_.closed()) {
    end_text(OXB_END_CONSTRAINT, piece);
  } else if (tokens_ == settings_.options.max_tokens) {
    end_text(OXB_END_MAX_TOKENS, piece);
  }
  return Status::kOk;
}

Status oxb_generator::next(oxb_piece* piece, Error* error) {
  *piece = OXB_PIECE_INIT;
  piece->text = "";
  follow_session();
  stop_.drop(shown_);
  shown_ = 0;
  if (!prompting_ && !writing_) begin_prompt();
  if (!cancel_.load(std::memory_order_relaxed)) OXB_TRY(close_text(error));
  if (cancel_.exchange(false, std::memory_order_relaxed) || prompt_cancelled_) {
    prompt_.drop();
    prompting_ = prompt_cancelled_ = false;
    piece->end = end_ = OXB_END_CANCELLED;
    return Status::kOk;
  }
  if (prompting_) {
    stop_.start();
    constraint_.start();
  }
  int32_t token = 0;
  const Status status = pick(&token, error);
  if (status == Status::kStreamFull && tokens_ > 0) {
    end_text(OXB_END_STREAM_FULL, piece);
    return Status::kOk;
  }
  OXB_TRY(status);
  prompting_ = false;
  writing_ = true;
  end_ = OXB_END_NONE;
  return take_picked(token, piece, error);
}

oxb_generation oxb_generator::progress() const {
  oxb_generation out = OXB_GENERATION_INIT;
  out.end = end_;
  out.tokens = tokens_;
  out.prompt_tokens = prompt_tokens_;
  out.prompt_nanoseconds = prompt_nanoseconds_;
  out.token_nanoseconds = token_nanoseconds_;
  out.position = session_.header->position + segment_count_;
  if (constraint_.saved().kind == oxbow::ConstraintKind::kChoices && constraint_.complete()) {
    out.choice = static_cast<int32_t>(constraint_.choice());
  }
  return out;
}
