// Where a generator's parts lie in its memory, and its state as bytes:
//
//   state:  Head | int32 segment[S] | sampler | char held[H] | the session's state

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/base/tensor.h"
#include "runtime/generate/generator.h"
#include "schema/model_generated.h"

using oxbow::Error;
using oxbow::fail;
using oxbow::Model;
using oxbow::Session;
using oxbow::StateForm;
using oxbow::Status;

namespace {

constexpr uint32_t kDefaultWordBytes = 4096;
constexpr uint32_t kStateVersion = 1;
constexpr char kMagic[8] = {'O', 'X', 'B', 'G', 'E', 'N', 'E', 'R'};
// Far more than anybody needs, so that sums stay far from overflow.
constexpr size_t kMaxStopTexts = 1 << 16;
constexpr size_t kMaxStopBytes = 1 << 24;
constexpr uint32_t kMaxUndoTurns = 1 << 16;

oxb_encoder_options encoder_options(const GeneratorSettings& settings) {
  oxb_encoder_options options = {};
  options.size = sizeof(options);
  options.add_template = settings.options.no_template == 0;
  // Each text says for itself.
  options.parse_special = 1;
  options.max_word_bytes =
      settings.options.max_word_bytes == 0 ? kDefaultWordBytes : settings.options.max_word_bytes;
  return options;
}

Status check_model(const Model& model, Error* error) {
  const oxbow::schema::EntryPoint& entry = model.main_entry();
  const auto task = model.graph->task();
  const bool generates =
      task == oxbow::schema::Task::Generate || task == oxbow::schema::Task::Translate;
  const auto* tokens = model.graph->tensors()->Get(entry.tokens());
  if (generates && !entry.starts() && model.vocabulary > 0 && model.output_width > 0 &&
      tokens->type() == oxbow::schema::DataType::I32) {
    return Status::kOk;
  }
  return fail(error, Status::kInvalidArgument,
              "generator: the model does not give logits of the next token");
}

Status check_stop_texts(const oxb_generator_options& options, size_t* bytes, size_t* longest,
                        Error* error) {
  *bytes = *longest = 0;
  if (options.stop_text_count > 0 && options.stop_texts == nullptr) {
    return fail(error, Status::kInvalidArgument, "generator: stop_texts is null");
  }
  if (options.stop_text_count > kMaxStopTexts) {
    return fail(error, Status::kInvalidArgument, "generator: %zu stop texts; expected up to %zu",
                options.stop_text_count, kMaxStopTexts);
  }
  for (size_t i = 0; i < options.stop_text_count; ++i) {
    const char* text = options.stop_texts[i];
    const size_t length = text == nullptr ? 0 : std::strlen(text);
    if (length == 0 || length > kMaxStopBytes - *bytes) {
      return fail(error, Status::kInvalidArgument,
                  "stop text %zu: it has %zu bytes; expected 1 or more, and %zu of all together", i,
                  length, kMaxStopBytes);
    }
    *bytes += length;
    *longest = std::max(*longest, length);
  }
  return Status::kOk;
}

}  // namespace

/// Offsets of the parts in the aligned memory.
struct oxb_generator::Layout {
  size_t encoder = 0, encoder_bytes = 0;
  size_t decoder = 0, decoder_bytes = 0;
  size_t sampler = 0, sampler_bytes = 0;
  size_t logits = 0;
  size_t segment = 0;
  size_t stop_lengths = 0;
  size_t stop_words = 0, stop_bytes = 0;
  size_t prompt = 0, prompt_bytes = 0;
  size_t token_text = 0, token_text_bytes = 0;
  size_t held = 0, held_bytes = 0;
  size_t undo = 0, undo_bytes = 0;
  /// With room to align.
  size_t bytes = 0;

  Status compute(const Session& session, const GeneratorSettings& settings, Error* error) {
    const Model& model = *session.model;
    OXB_TRY(check_model(model, error));
    size_t longest = 0;
    OXB_TRY(check_stop_texts(settings.options, &stop_bytes, &longest, error));
    uint64_t end = sizeof(oxb_generator);
    const auto add = [&](uint64_t count) {
      const size_t begin = oxbow::round_up(static_cast<size_t>(end), alignof(std::max_align_t));
      end = begin + count;
      return begin;
    };
    OXB_TRY(oxb_sampler::measure(model.output_width, settings.sampling, &sampler_bytes, error));
    sampler = add(sampler_bytes);
    logits = add(uint64_t{model.output_width} * sizeof(float));
    segment = add(uint64_t{model.max_segment} * sizeof(int32_t));
    if (model.tokenizer.table != nullptr) {
      const oxb_encoder_options options = encoder_options(settings);
      OXB_TRY(oxb_encoder::measure(model.tokenizer, options, &encoder_bytes, error));
      encoder = add(encoder_bytes);
      decoder_bytes = oxb_decoder::bytes();
      decoder = add(decoder_bytes);
      prompt_bytes = oxbow::PromptText::buffer_bytes(model.tokenizer, options.max_word_bytes);
      prompt = add(prompt_bytes);
      token_text_bytes = oxb_decoder::most_text(model.tokenizer);
      token_text = add(token_text_bytes);
      held_bytes = longest + token_text_bytes + oxbow::CharacterWriter::most(0);
      held = add(held_bytes);
    }
    stop_lengths = add(settings.options.stop_text_count * sizeof(uint32_t));
    stop_words = add(stop_bytes);
    if (settings.options.undo_turns > kMaxUndoTurns) {
      return fail(error, Status::kInvalidArgument, "generator: undo_turns is %u; expected up to %u",
                  static_cast<unsigned>(settings.options.undo_turns),
                  static_cast<unsigned>(kMaxUndoTurns));
    }
    const uint64_t state = state_bytes(session, settings, held_bytes);
    undo = add(state * settings.options.undo_turns);
    undo_bytes = static_cast<size_t>(state * settings.options.undo_turns);
    end += alignof(std::max_align_t) - 1;
    if (end > SIZE_MAX / 2) {
      return fail(error, Status::kInvalidArgument, "generator: it does not fit in memory");
    }
    bytes = static_cast<size_t>(end);
    return Status::kOk;
  }

  static size_t state_bytes(const Session& session, const GeneratorSettings& settings,
                            size_t held_bytes);
};

/// The fixed part of a state. All of it is from outside when it is loaded.
struct oxb_generator::Head {
  char magic[8];
  uint32_t version;
  uint32_t head_bytes;
  /// Of all behind this field, but the session's state, which has its own.
  uint64_t checksum;
  /// What sizes the rest: equal in the generator that loads it.
  uint64_t segment_room;
  uint64_t sampler_bytes;
  uint64_t held_room;

  uint64_t segment_count;
  uint64_t held_count;
  uint64_t tokens;
  uint64_t prompt_tokens;
  int32_t phase;
  int32_t end;
  int32_t writing;
  int32_t unused;
  oxb_decoder::Saved decoder;
  oxbow::Constraint::Saved constraint;
};

size_t oxb_generator::Layout::state_bytes(const Session& session, const GeneratorSettings& settings,
                                          size_t held_bytes) {
  return sizeof(Head) + session.model->max_segment * sizeof(int32_t) +
         oxb_sampler::saved_bytes(settings.sampling) + oxbow::round_up(held_bytes, 8) +
         oxbow::state_blob_bytes(session);
}

Status oxb_generator::measure(const Session& session, const GeneratorSettings& settings,
                              size_t* bytes, Error* error) {
  Layout layout;
  OXB_TRY(layout.compute(session, settings, error));
  *bytes = layout.bytes;
  return Status::kOk;
}

Status oxb_generator::place(Session& session, const GeneratorSettings& settings, void* memory,
                            size_t bytes, oxb_generator** generator, Error* error) {
  Layout layout;
  OXB_TRY(layout.compute(session, settings, error));
  if (memory == nullptr || bytes < layout.bytes) {
    return fail(error, Status::kBufferTooSmall, "generator: given %zu bytes; expected %zu",
                memory == nullptr ? 0 : bytes, layout.bytes);
  }
  auto* base = static_cast<std::byte*>(memory);
  base += -reinterpret_cast<uintptr_t>(base) % alignof(std::max_align_t);
  const Model& model = *session.model;
  auto* made = new (base) oxb_generator(session, settings);
  OXB_TRY(oxb_sampler::place(model.output_width, settings.sampling, base + layout.sampler,
                             layout.sampler_bytes, &made->sampler_, error));
  made->logits_ = {new (base + layout.logits) float[model.output_width], model.output_width};
  made->segment_ = {new (base + layout.segment) int32_t[model.max_segment], model.max_segment};
  const auto chars = [&](size_t offset, size_t count) {
    return std::span(reinterpret_cast<char*>(base + offset), count);
  };
  if (model.tokenizer.table != nullptr) {
    OXB_TRY(oxb_encoder::place(model.tokenizer, encoder_options(settings), base + layout.encoder,
                               layout.encoder_bytes, &made->encoder_, error));
    oxb_decoder_options decoding = {};
    decoding.size = sizeof(decoding);
    decoding.skip_special = 1;
    OXB_TRY(oxb_decoder::place(model.tokenizer, decoding, base + layout.decoder,
                               layout.decoder_bytes, &made->decoder_, error));
    made->prompt_.place(made->encoder_, chars(layout.prompt, layout.prompt_bytes));
    made->token_text_ = chars(layout.token_text, layout.token_text_bytes);
    made->held_text_ = chars(layout.held, layout.held_bytes);
  }
  const size_t stops = settings.options.stop_text_count;
  const std::span<uint32_t> lengths = {new (base + layout.stop_lengths) uint32_t[stops], stops};
  const std::span<char> words = chars(layout.stop_words, layout.stop_bytes);
  for (size_t i = 0, at = 0; i < stops; at += lengths[i++]) {
    lengths[i] = static_cast<uint32_t>(std::strlen(settings.options.stop_texts[i]));
    std::memcpy(words.data() + at, settings.options.stop_texts[i], lengths[i]);
  }
  made->stop_.place(words, lengths, made->held_text_);
  made->undo_states_ = {base + layout.undo, layout.undo_bytes};
  made->position_ = session.header->position;
  *generator = made;
  return Status::kOk;
}

size_t oxb_generator::state_bytes() const {
  return Layout::state_bytes(session_, settings_, held_text_.size());
}

Status oxb_generator::save(StateForm form, std::span<std::byte> state, Error* error) {
  if (state.size() < state_bytes()) {
    return fail(error, Status::kBufferTooSmall, "generator state: room for %zu bytes; expected %zu",
                state.size(), state_bytes());
  }
  follow_session();
  OXB_TRY(close_text(error));
  stop_.drop(shown_);
  shown_ = 0;

  // Only plain fields are set, so that equal states are equal bytes.
  Head head;
  std::memset(static_cast<void*>(&head), 0, sizeof(head));
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  head.version = kStateVersion;
  head.head_bytes = sizeof(Head);
  head.segment_room = segment_.size();
  head.sampler_bytes = oxb_sampler::saved_bytes(settings_.sampling);
  head.held_room = held_text_.size();
  head.segment_count = segment_count_;
  head.held_count = stop_.size();
  head.tokens = tokens_;
  head.prompt_tokens = prompt_tokens_;
  head.phase = static_cast<int32_t>(chat_.phase());
  head.end = end_;
  head.writing = writing_;
  if (decoder_ != nullptr) head.decoder = decoder_->save();
  head.constraint = constraint_.saved();

  std::byte* at = state.data() + sizeof(Head);
  const size_t rest = state_bytes() - sizeof(Head) - oxbow::state_blob_bytes(session_);
  std::memset(at, 0, rest);
  std::memcpy(at, segment_.data(), segment_count_ * sizeof(int32_t));
  at += segment_.size_bytes();
  sampler_->save(at);
  at += head.sampler_bytes;
  if (stop_.size() > 0) std::memcpy(at, stop_.text(), stop_.size());
  at += oxbow::round_up(held_text_.size(), 8);
  head.checksum = oxbow::hash_bytes(&head.segment_room, sizeof(Head) - offsetof(Head, segment_room),
                                    oxbow::hash_bytes(state.data() + sizeof(Head), rest));
  std::memcpy(state.data(), &head, sizeof(head));
  return oxbow::write_state(session_, form, {at, oxbow::state_blob_bytes(session_)}, error);
}

Status oxb_generator::load(StateForm form, std::span<const std::byte> state, Error* error) {
  const auto corrupt = [&](const char* what) {
    return fail(error, Status::kStateCorrupt, "generator state: %s", what);
  };
  Head head;
  if (state.size() < sizeof(head)) return corrupt("it is too short");
  std::memcpy(&head, state.data(), sizeof(head));
  if (std::memcmp(head.magic, kMagic, sizeof(kMagic)) != 0) {
    return corrupt("it is not a saved generator");
  }
  if (head.version != kStateVersion || head.head_bytes != sizeof(Head)) {
    return fail(error, Status::kStateMismatch, "generator state: saved by another version");
  }
  if (state.size() != state_bytes() || head.segment_room != segment_.size() ||
      head.sampler_bytes != oxb_sampler::saved_bytes(settings_.sampling) ||
      head.held_room != held_text_.size()) {
    return fail(error, Status::kStateMismatch,
                "generator state: saved by a generator of another model or with other options");
  }
  const size_t rest = state_bytes() - sizeof(Head) - oxbow::state_blob_bytes(session_);
  const uint64_t checksum =
      oxbow::hash_bytes(&head.segment_room, sizeof(Head) - offsetof(Head, segment_room),
                        oxbow::hash_bytes(state.data() + sizeof(Head), rest));
  if (checksum != head.checksum) return corrupt("its checksum is wrong");
  // A checksum is no proof: whatever indexes memory is checked.
  if (head.segment_count > segment_.size() || head.held_count > held_text_.size() ||
      head.phase < 0 || head.phase > static_cast<int32_t>(oxbow::Chat::Phase::kAnswered) ||
      head.end < OXB_END_NONE || head.end > OXB_END_CONSTRAINT) {
    return corrupt("a number is out of range");
  }
  const std::byte* segment = state.data() + sizeof(Head);
  for (size_t i = 0; i < head.segment_count; ++i) {
    int32_t token = 0;
    std::memcpy(&token, segment + i * sizeof(token), sizeof(token));
    if (token < 0 || static_cast<uint32_t>(token) >= session_.model->vocabulary) {
      return corrupt("a token is not in the vocabulary");
    }
  }
  const std::byte* sampler = segment + segment_.size_bytes();
  const std::byte* held = sampler + head.sampler_bytes;
  const std::byte* session = held + oxbow::round_up(held_text_.size(), 8);

  oxbow::Constraint constraint = constraint_;
  OXB_TRY(constraint.load(head.constraint, error));
  OXB_TRY(oxbow::read_state(session_, form, {session, oxbow::state_blob_bytes(session_)}, error));
  // From here on the stream is the new one, so what goes wrong must leave nothing of the old.
  forget_text();
  position_ = session_.header->position;
  if (decoder_ != nullptr) OXB_TRY(decoder_->load(head.decoder, error));
  OXB_TRY(sampler_->load(sampler, error));
  constraint_ = constraint;
  (void)stop_.add({reinterpret_cast<const char*>(held), static_cast<size_t>(head.held_count)});
  segment_count_ = static_cast<size_t>(head.segment_count);
  std::memcpy(segment_.data(), segment, segment_count_ * sizeof(int32_t));
  tokens_ = head.tokens;
  prompt_tokens_ = head.prompt_tokens;
  prompt_nanoseconds_ = token_nanoseconds_ = 0;
  chat_.set_phase(static_cast<oxbow::Chat::Phase>(head.phase));
  end_ = head.end;
  writing_ = head.writing != 0;
  return Status::kOk;
}
