#pragma once

// Oxbow for C++20: ownership and spans around oxbow.h, which is the manual. Nothing throws: a call
// that can fail returns a Status, or an Expected that holds the value or the Status.
//
//   auto model = oxb::Model::open("m.oxb");
//   if (!model) return complain(model.status().text());
//   auto session = oxb::Session::create(*model);
//   std::vector<float> logits(model->info().output_width);
//   oxb::Status status = session->run(tokens, logits);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#if __has_include("runtime/api/oxbow.h")
#include "runtime/api/oxbow.h"
#else
#include "oxbow.h"
#endif

namespace oxb {

/// What a call says: a code, and words when it failed.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(oxb_status code, const char* text = "") : code_(code) {
    for (size_t i = 0; i + 1 < sizeof(error_.text) && text[i] != '\0'; ++i)
      error_.text[i] = text[i];
  }

  bool ok() const { return code_ == OXB_OK; }
  oxb_status code() const { return code_; }
  const char* name() const { return oxb_status_name(code_); }
  /// The message; the code's name when there is none.
  const char* text() const { return error_.text[0] != '\0' ? error_.text : name(); }

  /// Calls a C function with a place for the words: Status::of([&](oxb_error* e) { return
  /// oxb_...(..., e); })
  template <typename F>
  static Status of(F&& call) {
    Status status;
    status.code_ = call(&status.error_);
    return status;
  }

 private:
  oxb_status code_ = OXB_OK;
  oxb_error error_ = {};
};

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(const Status& status) : status_(status) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  /// Only when ok().
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

struct SessionOptions : oxb_session_options {
  SessionOptions() { oxb_session_options_init(this); }
};

struct SamplerOptions : oxb_sampler_options {
  SamplerOptions() { oxb_sampler_options_init(this); }
};

struct EncoderOptions : oxb_encoder_options {
  EncoderOptions() { oxb_encoder_options_init(this); }
};

struct DecoderOptions : oxb_decoder_options {
  DecoderOptions() { oxb_decoder_options_init(this); }
};

/// How far Encoder::run came: ids written, bytes of text taken.
struct Encoded {
  size_t count = 0;
  size_t consumed = 0;
};

class Model {
 public:
  static Expected<Model> open(const char* path) {
    return made([&](oxb_model** model, oxb_error* error) {
      return oxb_model_open_file(path, model, error);
    });
  }
  static Expected<Model> open(int fd, uint64_t offset, uint64_t length) {
    return made([&](oxb_model** model, oxb_error* error) {
      return oxb_model_open_fd(fd, offset, length, model, error);
    });
  }
  /// `data` is aligned to 64 and outlives the model.
  static Expected<Model> open(std::span<const std::byte> data) {
    return made([&](oxb_model** model, oxb_error* error) {
      return oxb_model_open_memory(data.data(), data.size(), model, error);
    });
  }

  const oxb_model* get() const { return model_.get(); }
  oxb_model_info info() const {
    oxb_model_info info = {};
    oxb_model_get_info(get(), &info);
    return info;
  }
  Expected<oxb_entry_info> entry_info(size_t entry) const {
    oxb_entry_info info = {};
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_model_entry_info(get(), entry, &info, error); });
    if (!status.ok()) return status;
    return info;
  }
  Expected<oxb_input_info> input_info(size_t entry, size_t input) const {
    oxb_input_info info = {};
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_model_input_info(get(), entry, input, &info, error); });
    if (!status.ok()) return status;
    return info;
  }
  Status check_weights() const {
    return Status::of([&](oxb_error* error) { return oxb_model_check_weights(get(), error); });
  }
  Expected<oxb_memory> memory(const oxb_session_options& options = SessionOptions()) const {
    oxb_memory memory = {};
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_session_memory(get(), &options, &memory, error); });
    if (!status.ok()) return status;
    return memory;
  }
  /// What a session will take from a device, beside the arena.
  Expected<size_t> device_bytes(const oxb_session_options& options = SessionOptions()) const {
    size_t bytes = 0;
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_session_device_bytes(get(), &options, &bytes, error); });
    if (!status.ok()) return status;
    return bytes;
  }

  bool ends_text(int32_t token) const { return oxb_model_ends_text(get(), token) != 0; }
  /// As the vocabulary has them, at most `room` of them.
  Expected<size_t> token_bytes(int32_t id, std::span<char> room) const {
    size_t count = 0;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_model_token_bytes(get(), id, room.data(), room.size(), &count, error);
    });
    if (!status.ok()) return status;
    return count;
  }

 private:
  struct Close {
    void operator()(oxb_model* model) const { oxb_model_close(model); }
  };

  explicit Model(oxb_model* model) : model_(model) {}
  template <typename F>
  static Expected<Model> made(F&& open) {
    oxb_model* model = nullptr;
    const Status status = Status::of([&](oxb_error* error) { return open(&model, error); });
    if (!status.ok()) return status;
    return Model(model);
  }

  std::unique_ptr<oxb_model, Close> model_;
};

/// One stream. The model outlives it.
class Session {
 public:
  /// Allocates the arena, once.
  static Expected<Session> create(const Model& model,
                                  const oxb_session_options& options = SessionOptions()) {
    size_t bytes = 0;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_session_arena_bytes(model.get(), &options, &bytes, error);
    });
    if (!status.ok()) return status;
    std::unique_ptr<std::byte[]> arena(new (std::nothrow) std::byte[bytes]);
    if (arena == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the session's arena");
    const std::span<std::byte> memory(arena.get(), bytes);  // Before the pointer moves away.
    return placed(model, options, memory, std::move(arena));
  }
  /// Uses memory of the caller, which outlives the session.
  static Expected<Session> create(const Model& model, const oxb_session_options& options,
                                  std::span<std::byte> arena) {
    return placed(model, options, arena, nullptr);
  }

  Session(Session&&) = default;
  Session& operator=(Session&& other) {
    session_.reset();  // Before the arena it lives in.
    arena_ = std::move(other.arena_);
    arena_bytes_ = other.arena_bytes_;
    output_width_ = other.output_width_;
    session_ = std::move(other.session_);
    return *this;
  }

  oxb_session* get() const { return session_.get(); }
  size_t arena_bytes() const { return arena_bytes_; }
  /// Beside the arena; 0 unless the backend is another library or a device.
  size_t backend_bytes() const { return oxb_session_backend_bytes(get()); }
  /// Writes the device's compiled shaders, for options.pipeline_cache of later sessions, and tells how many
  /// bytes they are; without a buffer only that.
  Expected<size_t> pipeline_cache(std::span<std::byte> buffer = {}) const {
    size_t count = 0;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_session_pipeline_cache(get(), buffer.data(), buffer.size(), &count, error);
    });
    if (!status.ok()) return status;
    return count;
  }

  /// Feeds tokens. `logits` has room for none, the last or more of their rows: [rows][output_width].
  Status run(std::span<const int32_t> tokens, std::span<float> logits = {}) {
    if (logits.size() % output_width_ != 0) {
      return Status(OXB_INVALID_ARGUMENT, "logits: the room is no multiple of the output's width");
    }
    return Status::of([&](oxb_error* error) {
      return oxb_session_run(get(), tokens.data(), tokens.size(), logits.data(),
                             logits.size() / output_width_, error);
    });
  }
  /// Any entry point with any of its inputs; `output` is [rows][its output width].
  Status run_entry(size_t entry, std::span<const oxb_input> inputs, float* output = nullptr,
                   size_t output_rows = 0) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_run_entry(get(), entry, inputs.data(), inputs.size(), output, output_rows,
                                   error);
    });
  }
  Status encode(std::span<const int32_t> tokens) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_encode(get(), tokens.data(), tokens.size(), error);
    });
  }
  Status run_batch(std::span<const int32_t> tokens, std::span<const size_t> lengths,
                   std::span<float> output) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_run_batch(get(), tokens.data(), lengths.data(), lengths.size(),
                                   output.data(), output.size() / output_width_, error);
    });
  }
  /// Takes over the stream of another session that shares memory with this one.
  Status copy(const Session& from) {
    return Status::of([&](oxb_error* error) { return oxb_session_copy(get(), from.get(), error); });
  }
  void reset() { oxb_session_reset(get()); }
  uint64_t position() const { return oxb_session_position(get()); }

  size_t state_bytes() const { return oxb_session_state_bytes(get()); }
  Status save(std::span<std::byte> buffer) const {
    return Status::of([&](oxb_error* error) {
      return oxb_session_save(get(), buffer.data(), buffer.size(), error);
    });
  }
  Status load(std::span<const std::byte> buffer) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_load(get(), buffer.data(), buffer.size(), error);
    });
  }
  Status checkpoint(std::span<std::byte> buffer) const {
    return Status::of([&](oxb_error* error) {
      return oxb_session_checkpoint(get(), buffer.data(), buffer.size(), error);
    });
  }
  Status rewind(std::span<const std::byte> buffer) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_rewind(get(), buffer.data(), buffer.size(), error);
    });
  }

  size_t tensor_count() const { return oxb_session_tensor_count(get()); }
  Expected<oxb_tensor_info> tensor_info(size_t index) const {
    oxb_tensor_info info = {};
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_session_tensor_info(get(), index, &info, error); });
    if (!status.ok()) return status;
    return info;
  }
  Status tensor_read(size_t index, std::span<float> values) const {
    return Status::of([&](oxb_error* error) {
      return oxb_session_tensor_read(get(), index, values.data(), values.size(), error);
    });
  }

  /// Null switches it off.
  void set_profile(oxb_profile_callback callback, void* context) {
    oxb_session_set_profile(get(), callback, context);
  }
  /// Null when there is no such step.
  const char* step_provider(size_t step) const { return oxb_session_step_provider(get(), step); }

 private:
  struct Destroy {
    void operator()(oxb_session* session) const { oxb_session_destroy(session); }
  };

  Session() = default;
  static Expected<Session> placed(const Model& model, const oxb_session_options& options,
                                  std::span<std::byte> arena, std::unique_ptr<std::byte[]> owned) {
    oxb_session* session = nullptr;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_session_create(model.get(), &options, arena.data(), arena.size(), &session, error);
    });
    if (!status.ok()) return status;
    Session made;
    made.arena_ = std::move(owned);
    made.arena_bytes_ = arena.size();
    made.output_width_ = model.info().output_width;
    made.session_.reset(session);
    return made;
  }

  // The session goes before the arena it lives in: members end in reverse order.
  std::unique_ptr<std::byte[]> arena_;
  size_t arena_bytes_ = 0;
  size_t output_width_ = 1;
  std::unique_ptr<oxb_session, Destroy> session_;
};

/// Text to tokens. The model outlives it.
class Encoder {
 public:
  static Expected<Encoder> create(const Model& model,
                                  const oxb_encoder_options& options = EncoderOptions()) {
    size_t bytes = 0;
    Status status = Status::of(
        [&](oxb_error* error) { return oxb_encoder_bytes(model.get(), &options, &bytes, error); });
    if (!status.ok()) return status;
    Encoder made;
    made.memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (made.memory_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the encoder");
    status = Status::of([&](oxb_error* error) {
      return oxb_encoder_create(model.get(), &options, made.memory_.get(), bytes, &made.encoder_,
                                error);
    });
    if (!status.ok()) return status;
    return made;
  }

  Status run(std::string_view text, bool last, std::span<int32_t> ids, Encoded* encoded) {
    return Status::of([&](oxb_error* error) {
      return oxb_encoder_run(encoder_, text.data(), text.size(), last ? 1 : 0, ids.data(),
                             ids.size(), &encoded->count, &encoded->consumed, error);
    });
  }
  void reset() { oxb_encoder_reset(encoder_); }

 private:
  Encoder() = default;
  std::unique_ptr<std::byte[]> memory_;
  oxb_encoder* encoder_ = nullptr;
};

/// Tokens to text. The model outlives it.
class Decoder {
 public:
  static Expected<Decoder> create(const Model& model,
                                  const oxb_decoder_options& options = DecoderOptions()) {
    size_t bytes = 0;
    Status status = Status::of(
        [&](oxb_error* error) { return oxb_decoder_bytes(model.get(), &options, &bytes, error); });
    if (!status.ok()) return status;
    Decoder made;
    made.memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (made.memory_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the decoder");
    status = Status::of([&](oxb_error* error) {
      return oxb_decoder_create(model.get(), &options, made.memory_.get(), bytes, &made.decoder_,
                                error);
    });
    if (!status.ok()) return status;
    made.capacity_ = oxb_decoder_most_text(made.decoder_);
    made.text_.reset(new (std::nothrow) char[made.capacity_]);
    if (made.text_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the decoder");
    return made;
  }

  /// The text is the decoder's own until the next call.
  Expected<std::string_view> run(int32_t id) {
    return text([&](size_t* count, oxb_error* error) {
      return oxb_decoder_run(decoder_, id, text_.get(), capacity_, count, error);
    });
  }
  Expected<std::string_view> finish() {
    return text([&](size_t* count, oxb_error* error) {
      return oxb_decoder_finish(decoder_, text_.get(), capacity_, count, error);
    });
  }

 private:
  Decoder() = default;
  template <typename F>
  Expected<std::string_view> text(F&& call) {
    size_t count = 0;
    const Status status = Status::of([&](oxb_error* error) { return call(&count, error); });
    if (!status.ok()) return status;
    return std::string_view(text_.get(), count);
  }

  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<char[]> text_;
  size_t capacity_ = 0;
  oxb_decoder* decoder_ = nullptr;
};

class Sampler {
 public:
  static Expected<Sampler> create(uint32_t vocabulary,
                                  const oxb_sampler_options& options = SamplerOptions()) {
    size_t bytes = 0;
    Status status = Status::of(
        [&](oxb_error* error) { return oxb_sampler_bytes(vocabulary, &options, &bytes, error); });
    if (!status.ok()) return status;
    Sampler made;
    made.memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (made.memory_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the sampler");
    made.vocabulary_ = vocabulary;
    status = Status::of([&](oxb_error* error) {
      return oxb_sampler_create(vocabulary, &options, made.memory_.get(), bytes, &made.sampler_,
                                error);
    });
    if (!status.ok()) return status;
    return made;
  }

  oxb_sampler* get() const { return sampler_; }
  void accept(int32_t token) { oxb_sampler_accept(sampler_, token); }
  /// `logits` is one row of the vocabulary.
  Expected<int32_t> pick(std::span<const float> logits) {
    if (logits.size() != vocabulary_) {
      return Status(OXB_INVALID_ARGUMENT, "sampler: expected one row of logits");
    }
    int32_t token = 0;
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_sampler_pick(sampler_, logits.data(), &token, error); });
    if (!status.ok()) return status;
    return token;
  }

 private:
  Sampler() = default;
  std::unique_ptr<std::byte[]> memory_;
  oxb_sampler* sampler_ = nullptr;
  size_t vocabulary_ = 0;
};

struct BeamOptions : oxb_beam_options {
  BeamOptions() { oxb_beam_options_init(this); }
};

class BeamSearch {
 public:
  struct Text {
    std::span<const int32_t> tokens;
    float score;
  };

  /// The session must outlive the search.
  static Expected<BeamSearch> create(Session& session,
                                     const oxb_beam_options& options = BeamOptions()) {
    size_t bytes = 0;
    Status status = Status::of([&](oxb_error* error) {
      return oxb_beam_search_bytes(session.get(), &options, &bytes, error);
    });
    if (!status.ok()) return status;
    BeamSearch made;
    made.memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (made.memory_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the beam search");
    status = Status::of([&](oxb_error* error) {
      return oxb_beam_search_create(session.get(), &options, made.memory_.get(), bytes,
                                    &made.search_, error);
    });
    if (!status.ok()) return status;
    return made;
  }

  oxb_beam_search* get() const { return search_; }
  Status run(std::span<const int32_t> prompt = {}) {
    return Status::of([&](oxb_error* error) {
      return oxb_beam_search_run(search_, prompt.data(), prompt.size(), error);
    });
  }
  size_t count() const { return oxb_beam_search_count(search_); }
  Expected<Text> result(size_t index) const {
    const int32_t* tokens = nullptr;
    size_t count = 0;
    float score = 0.0f;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_beam_search_result(search_, index, &tokens, &count, &score, error);
    });
    if (!status.ok()) return status;
    return Text{{tokens, count}, score};
  }

 private:
  BeamSearch() = default;
  std::unique_ptr<std::byte[]> memory_;
  oxb_beam_search* search_ = nullptr;
};

struct GeneratorOptions : oxb_generator_options {
  GeneratorOptions() : oxb_generator_options(OXB_GENERATOR_OPTIONS_INIT) {}
};

struct Piece : oxb_piece {
  Piece() : oxb_piece(OXB_PIECE_INIT) {}
  std::string_view view() const { return {text, text_bytes}; }
  /// It was the text's last.
  bool last() const { return end != OXB_END_NONE; }
};

struct Generation : oxb_generation {
  Generation() : oxb_generation(OXB_GENERATION_INIT) {}
};

/// Prompt in, text out. The session outlives it.
class Generator {
 public:
  static Expected<Generator> create(Session& session,
                                    const oxb_generator_options& options = GeneratorOptions()) {
    size_t bytes = 0;
    Status status = Status::of([&](oxb_error* error) {
      return oxb_generator_bytes(session.get(), &options, &bytes, error);
    });
    if (!status.ok()) return status;
    Generator made;
    made.memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (made.memory_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the generator");
    oxb_generator* generator = nullptr;
    status = Status::of([&](oxb_error* error) {
      return oxb_generator_create(session.get(), &options, made.memory_.get(), bytes, &generator,
                                  error);
    });
    if (!status.ok()) return status;
    made.generator_.reset(generator);
    return made;
  }

  oxb_generator* get() const { return generator_.get(); }

  Status add(std::string_view text) {
    return Status::of([&](oxb_error* error) {
      return oxb_generator_add_text(get(), text.data(), text.size(), error);
    });
  }
  Status add(std::span<const int32_t> tokens) {
    return Status::of([&](oxb_error* error) {
      return oxb_generator_add_tokens(get(), tokens.data(), tokens.size(), error);
    });
  }
  /// One of OXB_ROLE_...
  Status add_message(int32_t role, std::string_view text) {
    return Status::of([&](oxb_error* error) {
      return oxb_generator_add_message(get(), role, text.data(), text.size(), error);
    });
  }
  Status undo() {
    return Status::of([&](oxb_error* error) { return oxb_generator_undo(get(), error); });
  }

  Expected<Piece> next() {
    Piece piece;
    const Status status =
        Status::of([&](oxb_error* error) { return oxb_generator_next(get(), &piece, error); });
    if (!status.ok()) return status;
    return piece;
  }
  /// Tells `hear` of each piece's text until the text ends or it gives false; gives OXB_END_...
  template <typename Hear>
  Expected<int32_t> run(Hear hear) {
    int32_t end = OXB_END_NONE;
    const auto callback = [](void* context, const oxb_piece* piece) -> int32_t {
      const bool more =
          (*static_cast<Hear*>(context))(std::string_view(piece->text, piece->text_bytes));
      return more ? 0 : 1;
    };
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_generator_run(get(), callback, &hear, &end, error); });
    if (!status.ok()) return status;
    return end;
  }
  /// The whole text at once.
  Expected<std::string> text() {
    std::string all;
    const Expected<int32_t> end = run([&](std::string_view piece) {
      all += piece;
      return true;
    });
    if (!end) return end.status();
    return all;
  }
  /// From any thread.
  void cancel() { oxb_generator_cancel(get()); }
  void reset() { oxb_generator_reset(get()); }
  Generation progress() const {
    Generation out;
    oxb_generator_progress(get(), &out, nullptr);
    return out;
  }

  /// One of OXB_CONSTRAINT_..., but choices.
  Status set_constraint(int32_t constraint) {
    return Status::of(
        [&](oxb_error* error) { return oxb_generator_set_constraint(get(), constraint, error); });
  }
  /// The texts stay where they are until another constraint is set.
  Status set_choices(std::span<const char* const> texts) {
    return Status::of([&](oxb_error* error) {
      return oxb_generator_set_choices(get(), texts.data(), texts.size(), error);
    });
  }

  size_t state_bytes() const { return oxb_generator_state_bytes(get()); }
  Status save(std::span<std::byte> state) {
    return Status::of([&](oxb_error* error) {
      return oxb_generator_save(get(), state.data(), state.size(), error);
    });
  }
  Status load(std::span<const std::byte> state) {
    return Status::of([&](oxb_error* error) {
      return oxb_generator_load(get(), state.data(), state.size(), error);
    });
  }

 private:
  struct Destroy {
    void operator()(oxb_generator* generator) const { oxb_generator_destroy(generator); }
  };

  Generator() = default;
  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<oxb_generator, Destroy> generator_;
};

}  // namespace oxb
