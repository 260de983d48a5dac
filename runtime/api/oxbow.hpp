#pragma once

// Oxbow for C++20: ownership and spans around oxbow.h, which is the manual. Nothing throws: a call
// that can fail returns a Status, or an Expected that holds the value or the Status.
//
//   auto model = oxb::Model::open("m.oxb");
//   if (!model) return complain(model.status().text());
//   auto session = oxb::Session::create(*model);
//   std::vector<float> logits(model->info().output_width);
//   oxb::Status status = session->run(tokens, logits);

// 201709: what GCC 10 calls its C++20.
#if __cplusplus < 201709L
#error "oxbow.hpp needs C++20; oxbow.h is for every C and C++."
#else

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if __has_include("runtime/api/oxbow_index.h")
#include "runtime/api/oxbow.h"
#include "runtime/api/oxbow_index.h"
#else
#include "oxbow.h"
#include "oxbow_index.h"
#endif

namespace oxb {

/// major * 10000 + minor * 100 + patch of the library that was linked.
inline uint32_t version() { return oxb_version(); }
/// Null when there is no such backend.
inline const char* backend_name(oxb_backend backend) { return oxb_backend_name(backend); }
inline bool is_built_in(oxb_backend backend) { return oxb_backend_is_built_in(backend) != 0; }

/// What a call says: a code, and words when it failed.
class [[nodiscard]] Status {
 public:
  Status() { error_.text[0] = '\0'; }
  explicit Status(oxb_status code, const char* text = "") : Status() {
    code_ = error_.code = code;
    size_t i = 0;
    for (; i + 1 < sizeof(error_.text) && text[i] != '\0'; ++i) error_.text[i] = text[i];
    error_.text[i] = '\0';
  }
  Status(const Status& other) { copy(other); }
  Status& operator=(const Status& other) {
    copy(other);
    return *this;
  }

  bool ok() const { return code_ == OXB_OK; }
  oxb_status code() const { return code_; }
  const char* name() const { return oxb_status_name(code_); }
  /// The message; the code's name when there is none.
  const char* text() const { return error_.text[0] != '\0' ? error_.text : name(); }
  /// The step that failed and its op; -1 and null when none was running.
  int32_t step() const { return error_.step; }
  const char* op() const { return error_.op; }

  /// Calls a C function with a place for the words: Status::of([&](oxb_error* e) { return
  /// oxb_...(..., e); })
  template <typename F>
  static Status of(F&& call) {
    Status status;
    status.code_ = call(&status.error_);
    return status;
  }

 private:
  // Of the text only what is used: a status is made for every token.
  void copy(const Status& other) {
    code_ = other.code_;
    error_.code = other.error_.code;
    error_.step = other.error_.step;
    error_.op = other.error_.op;
    size_t i = 0;
    do {
      error_.text[i] = other.error_.text[i];
    } while (other.error_.text[i++] != '\0');
  }

  struct Words : oxb_error {
    Words() {
      size = sizeof(oxb_error);
      code = OXB_OK;
      step = -1;
      op = nullptr;
    }
  };
  oxb_status code_ = OXB_OK;
  Words error_;
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

struct OpenOptions : oxb_open_options {
  OpenOptions() : oxb_open_options OXB_OPEN_OPTIONS_INIT {}
};

struct SessionOptions : oxb_session_options {
  SessionOptions() : oxb_session_options OXB_SESSION_OPTIONS_INIT {}
};

struct SamplerOptions : oxb_sampler_options {
  SamplerOptions() : oxb_sampler_options OXB_SAMPLER_OPTIONS_INIT {}
};

struct EncoderOptions : oxb_encoder_options {
  EncoderOptions() : oxb_encoder_options OXB_ENCODER_OPTIONS_INIT {}
};

struct DecoderOptions : oxb_decoder_options {
  DecoderOptions() : oxb_decoder_options OXB_DECODER_OPTIONS_INIT {}
};

struct BeamOptions : oxb_beam_options {
  BeamOptions() : oxb_beam_options OXB_BEAM_OPTIONS_INIT {}
};

struct EmbedOptions : oxb_embed_options {
  EmbedOptions() : oxb_embed_options OXB_EMBED_OPTIONS_INIT {}
};

/// One input of Session::run_entry, and one output, of which the main one has the rows that are wanted.
inline oxb_input input(const char* name, std::span<const int32_t> values) {
  return {sizeof(oxb_input), name, values.data(), values.size()};
}
inline oxb_input input(const char* name, std::span<const float> values, size_t rows) {
  return {sizeof(oxb_input), name, values.data(), rows};
}
inline oxb_output output(const char* name, std::span<float> place, size_t rows = 0) {
  return {sizeof(oxb_output), name, place.data(), place.size(), rows};
}

namespace detail {

/// An object that lives in memory of its own. Moved from, it is empty: the C functions refuse it.
template <typename Object, void (*destroy)(Object*)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept
      : memory_(std::move(other.memory_)), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this == &other) return *this;
    destroy(object_);
    memory_ = std::move(other.memory_);
    object_ = std::exchange(other.object_, nullptr);
    return *this;
  }
  ~Owned() { destroy(object_); }

  Object* get() const { return object_; }

  /// measure(bytes, error), then create(memory, bytes, object, error).
  template <typename Measure, typename Create>
  Status make(const char* what, Measure&& measure, Create&& create) {
    size_t bytes = 0;
    const Status status = Status::of([&](oxb_error* error) { return measure(&bytes, error); });
    if (!status.ok()) return status;
    memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (memory_ == nullptr) return Status(OXB_OUT_OF_MEMORY, what);
    return Status::of(
        [&](oxb_error* error) { return create(memory_.get(), bytes, &object_, error); });
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  Object* object_ = nullptr;
};

}  // namespace detail

/// How far Encoder::run came: ids written, bytes of text taken.
struct Encoded {
  size_t count = 0;
  size_t consumed = 0;
};

/// A file that was opened. Moved from, it is empty.
class Model {
 public:
  static Expected<Model> open(const char* path, const oxb_open_options& options = OpenOptions()) {
    return made([&](oxb_model** model, oxb_error* error) {
      return oxb_model_open_file(path, &options, model, error);
    });
  }
  static Expected<Model> open(int fd, uint64_t offset, uint64_t length,
                              const oxb_open_options& options = OpenOptions()) {
    return made([&](oxb_model** model, oxb_error* error) {
      return oxb_model_open_fd(fd, offset, length, &options, model, error);
    });
  }
  /// `data` is aligned to 64 and outlives the model.
  static Expected<Model> open(std::span<const std::byte> data,
                              const oxb_open_options& options = OpenOptions()) {
    return made([&](oxb_model** model, oxb_error* error) {
      return oxb_model_open_memory(data.data(), data.size(), &options, model, error);
    });
  }

  const oxb_model* get() const { return model_.get(); }
  oxb_model_info info() const {
    oxb_model_info info = OXB_MODEL_INFO_INIT;
    (void)oxb_model_get_info(get(), &info, nullptr);  // Of a model there is one.
    return info;
  }
  Expected<oxb_entry_info> entry_info(size_t entry) const {
    oxb_entry_info info = OXB_ENTRY_INFO_INIT;
    return with(info,
                [&](oxb_error* error) { return oxb_model_entry_info(get(), entry, &info, error); });
  }
  Expected<oxb_input_info> input_info(size_t entry, size_t input) const {
    oxb_input_info info = OXB_INPUT_INFO_INIT;
    return with(info, [&](oxb_error* error) {
      return oxb_model_input_info(get(), entry, input, &info, error);
    });
  }
  Expected<oxb_output_info> output_info(size_t entry, size_t output) const {
    oxb_output_info info = OXB_OUTPUT_INFO_INIT;
    return with(info, [&](oxb_error* error) {
      return oxb_model_output_info(get(), entry, output, &info, error);
    });
  }
  Expected<size_t> find_entry(const char* name) const {
    size_t entry = 0;
    return with(entry,
                [&](oxb_error* error) { return oxb_model_find_entry(get(), name, &entry, error); });
  }
  Expected<size_t> find_input(size_t entry, const char* name) const {
    size_t input = 0;
    return with(input, [&](oxb_error* error) {
      return oxb_model_find_input(get(), entry, name, &input, error);
    });
  }
  Status check_weights() const {
    return Status::of([&](oxb_error* error) { return oxb_model_check_weights(get(), error); });
  }
  /// What a session with these options takes. They stay where they are as long as the plan is used.
  Expected<oxb_plan> plan(const oxb_session_options& options) const {
    oxb_plan plan = OXB_PLAN_INIT;
    return with(plan,
                [&](oxb_error* error) { return oxb_session_plan(get(), &options, &plan, error); });
  }
  Expected<oxb_plan> plan() const {
    oxb_plan plan = OXB_PLAN_INIT;
    return with(plan,
                [&](oxb_error* error) { return oxb_session_plan(get(), nullptr, &plan, error); });
  }
  Expected<std::pair<const char*, const char*>> metadata(size_t index) const {
    std::pair<const char*, const char*> entry;
    return with(entry, [&](oxb_error* error) {
      return oxb_model_metadata(get(), index, &entry.first, &entry.second, error);
    });
  }
  /// Null when the file has none.
  const char* find_metadata(const char* key) const { return oxb_model_find_metadata(get(), key); }
  const char* label(size_t index) const { return oxb_model_label(get(), index); }
  const char* chat_before() const { return oxb_model_chat_before(get()); }
  const char* chat_after() const { return oxb_model_chat_after(get()); }
  /// What the model's makers advise.
  SamplerOptions sampler_options() const {
    SamplerOptions options;
    (void)oxb_sampler_options_advised(get(), &options, nullptr);
    return options;
  }
  BeamOptions beam_options() const {
    BeamOptions options;
    (void)oxb_beam_options_advised(get(), &options, nullptr);
    return options;
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
  // `value` is what the call fills.
  template <typename T, typename F>
  static Expected<T> with(const T& value, F&& call) {
    const Status status = Status::of(call);
    if (!status.ok()) return status;
    return value;
  }
  template <typename F>
  static Expected<Model> made(F&& open) {
    oxb_model* model = nullptr;
    const Status status = Status::of([&](oxb_error* error) { return open(&model, error); });
    if (!status.ok()) return status;
    return Model(model);
  }

  std::unique_ptr<oxb_model, Close> model_;
};

struct NpuOptions : oxb_npu_options {
  NpuOptions() : oxb_npu_options(OXB_NPU_OPTIONS_INIT) {}
};

/// An accelerator, for SessionOptions::npu. Sessions that use it keep it alive.
class Npu {
 public:
  static Expected<Npu> open(const oxb_npu_options& options) {
    oxb_npu* npu = nullptr;
    const Status status =
        Status::of([&](oxb_error* error) { return oxb_npu_open(&options, &npu, error); });
    if (!status.ok()) return status;
    return Npu(npu);
  }
  /// By name or path, without settings.
  static Expected<Npu> open(const char* plugin) {
    NpuOptions options;
    options.plugin = plugin;
    return open(options);
  }

  oxb_npu* get() const { return npu_.get(); }

 private:
  struct Close {
    void operator()(oxb_npu* npu) const { oxb_npu_close(npu); }
  };

  explicit Npu(oxb_npu* npu) : npu_(npu) {}

  std::unique_ptr<oxb_npu, Close> npu_;
};

/// One stream. The model outlives it. Moved from, it is empty.
class Session {
 public:
  /// Allocates the arena, once.
  static Expected<Session> create(const Model& model,
                                  const oxb_session_options& options = SessionOptions()) {
    const Expected<oxb_plan> plan = model.plan(options);
    if (!plan) return plan.status();
    std::unique_ptr<std::byte[]> arena(new (std::nothrow) std::byte[plan->arena_bytes]);
    if (arena == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the session's arena");
    const std::span<std::byte> memory(arena.get(), plan->arena_bytes);  // Before it moves away.
    return placed(model, *plan, memory, std::move(arena));
  }
  /// Uses memory of the caller, which outlives the session.
  static Expected<Session> create(const Model& model, const oxb_plan& plan,
                                  std::span<std::byte> arena) {
    return placed(model, plan, arena, nullptr);
  }

  Session(Session&& other) noexcept { take(other); }
  Session& operator=(Session&& other) noexcept {
    if (this == &other) return *this;
    session_.reset();  // Before the arena it lives in.
    take(other);
    return *this;
  }

  oxb_session* get() const { return session_.get(); }
  size_t arena_bytes() const { return arena_bytes_; }
  /// Beside the arena; 0 unless the backend is another library or a device.
  size_t backend_bytes() const {
    size_t bytes = 0;
    (void)oxb_session_backend_bytes(get(), &bytes, nullptr);
    return bytes;
  }
  /// What an accelerator has done; only with OXB_BACKEND_NPU.
  Expected<oxb_npu_report> npu_report() const {
    oxb_npu_report report = OXB_NPU_REPORT_INIT;
    const Status status =
        Status::of([&](oxb_error* error) { return oxb_session_npu_report(get(), &report, error); });
    if (!status.ok()) return status;
    return report;
  }
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
      return oxb_session_run(get(), tokens.data(), tokens.size(), logits.size() / output_width_,
                             logits.data(), logits.size(), error);
    });
  }
  /// Ends the run under way, or the next. For any thread.
  void cancel() const { (void)oxb_session_cancel(get()); }
  /// Any entry point with any of its inputs, for any of its outputs.
  Status run_entry(size_t entry, std::span<const oxb_input> inputs,
                   std::span<oxb_output> outputs = {}) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_run_entry(get(), entry, inputs.data(), inputs.size(), outputs.data(),
                                   outputs.size(), error);
    });
  }
  /// For `rows` rows of the main output alone.
  Status run_entry(size_t entry, std::span<const oxb_input> inputs, std::span<float> output,
                   size_t rows) {
    oxb_entry_info info = OXB_ENTRY_INFO_INIT;
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_model_entry_info(model_, entry, &info, error); });
    if (!status.ok()) return status;
    oxb_output wanted = {sizeof(oxb_output), info.output, output.data(), output.size(), rows};
    return run_entry(entry, inputs, {&wanted, rows == 0 ? size_t{0} : size_t{1}});
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
                                   output.data(), output.size(), error);
    });
  }
  /// Feeds tokens[i] to sessions[i]; logits: [sessions][output_width], or empty.
  static Status run_together(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                             std::span<float> logits = {}) {
    if (tokens.size() < sessions.size()) {
      return Status(OXB_INVALID_ARGUMENT, "fewer tokens than sessions");
    }
    std::vector<oxb_session*> handles;
    for (const Session* session : sessions) handles.push_back(session->get());
    return Status::of([&](oxb_error* error) {
      return oxb_sessions_run(handles.data(), handles.size(), tokens.data(), logits.data(),
                              logits.size(), error);
    });
  }
  /// One row for a whole text. Allocates.
  Expected<std::vector<float>> embed(std::span<const int32_t> tokens,
                                     const oxb_embed_options& options = EmbedOptions()) {
    std::vector<float> rows(std::max<size_t>(tokens.size(), fixed_rows_) * output_width_);
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_session_embed(get(), tokens.data(), tokens.size(), &options, rows.data(),
                               rows.size(), error);
    });
    if (!status.ok()) return status;
    rows.resize(output_width_);
    return rows;
  }
  /// Takes over the stream of another session that shares memory with this one.
  Status copy(const Session& from) {
    return Status::of([&](oxb_error* error) { return oxb_session_copy(get(), from.get(), error); });
  }
  void reset() { (void)oxb_session_reset(get(), nullptr); }
  uint64_t position() const {
    uint64_t position = 0;
    (void)oxb_session_position(get(), &position, nullptr);
    return position;
  }

  size_t state_bytes() const {
    size_t bytes = 0;
    (void)oxb_session_state_bytes(get(), &bytes, nullptr);
    return bytes;
  }
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

  /// Memory for draft(), of the session while the draft lasts.
  Expected<size_t> draft_bytes(size_t tokens) const {
    size_t bytes = 0;
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_session_draft_bytes(get(), tokens, &bytes, error); });
    if (!status.ok()) return status;
    return bytes;
  }
  /// Runs from here on, of at most `tokens` in all, can be taken back in part.
  Status draft(std::span<std::byte> memory, size_t tokens) {
    return Status::of([&](oxb_error* error) {
      return oxb_session_draft(get(), memory.data(), memory.size(), tokens, error);
    });
  }
  /// Goes on behind the first `tokens` of the draft.
  Status keep(size_t tokens) {
    return Status::of([&](oxb_error* error) { return oxb_session_keep(get(), tokens, error); });
  }

  size_t tensor_count() const {
    size_t count = 0;
    (void)oxb_session_tensor_count(get(), &count, nullptr);
    return count;
  }
  Expected<size_t> find_tensor(const char* name) const {
    size_t index = 0;
    const Status status = Status::of(
        [&](oxb_error* error) { return oxb_session_find_tensor(get(), name, &index, error); });
    if (!status.ok()) return status;
    return index;
  }
  Expected<oxb_tensor_info> tensor_info(size_t index) const {
    oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
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
    (void)oxb_session_set_profile(get(), callback, context, nullptr);
  }
  /// Null when there is no such step.
  const char* step_provider(size_t step) const { return oxb_session_step_provider(get(), step); }

 private:
  struct Destroy {
    void operator()(oxb_session* session) const { oxb_session_destroy(session); }
  };

  Session() = default;
  static Expected<Session> placed(const Model& model, const oxb_plan& plan,
                                  std::span<std::byte> arena, std::unique_ptr<std::byte[]> owned) {
    oxb_session* session = nullptr;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_session_create(model.get(), &plan, arena.data(), arena.size(), &session, error);
    });
    if (!status.ok()) return status;
    Session made;
    made.session_.reset(session);
    made.arena_ = std::move(owned);
    made.arena_bytes_ = arena.size();
    made.model_ = model.get();
    made.output_width_ = model.info().output_width;
    const Expected<oxb_entry_info> entry = model.entry_info(model.info().entry_count - 1);
    if (entry) made.fixed_rows_ = entry->output_rows;
    return made;
  }
  void take(Session& other) {
    arena_ = std::move(other.arena_);
    arena_bytes_ = std::exchange(other.arena_bytes_, 0);
    model_ = std::exchange(other.model_, nullptr);
    output_width_ = std::exchange(other.output_width_, 1);
    fixed_rows_ = std::exchange(other.fixed_rows_, 0);
    session_ = std::move(other.session_);
  }

  // The session goes before the arena it lives in: members end in reverse order.
  std::unique_ptr<std::byte[]> arena_;
  size_t arena_bytes_ = 0;
  const oxb_model* model_ = nullptr;
  size_t output_width_ = 1;
  /// Of the output; 0: the caller chooses.
  size_t fixed_rows_ = 0;
  std::unique_ptr<oxb_session, Destroy> session_;
};

/// Text to tokens. The model outlives it. Moved from, it is empty.
class Encoder {
 public:
  static Expected<Encoder> create(const Model& model,
                                  const oxb_encoder_options& options = EncoderOptions()) {
    Encoder made;
    const Status status = made.encoder_.make(
        "no memory for the encoder",
        [&](size_t* bytes, oxb_error* error) {
          return oxb_encoder_bytes(model.get(), &options, bytes, error);
        },
        [&](void* memory, size_t bytes, oxb_encoder** encoder, oxb_error* error) {
          return oxb_encoder_create(model.get(), &options, memory, bytes, encoder, error);
        });
    if (!status.ok()) return status;
    return made;
  }

  oxb_encoder* get() const { return encoder_.get(); }
  Status run(std::string_view text, bool last, std::span<int32_t> ids, Encoded* encoded) {
    return Status::of([&](oxb_error* error) {
      return oxb_encoder_run(get(), text.data(), text.size(), last ? 1 : 0, ids.data(), ids.size(),
                             &encoded->count, &encoded->consumed, error);
    });
  }
  /// All tokens of a whole text. Allocates, and forgets a text that was begun.
  Expected<std::vector<int32_t>> encode(std::string_view text) {
    reset();
    std::vector<int32_t> ids(text.size() / 2 + 16);
    for (size_t count = 0;;) {
      Encoded some;
      const Status status = run(text, true, std::span(ids).subspan(count), &some);
      if (!status.ok()) {
        reset();
        return status;
      }
      count += some.count;
      text.remove_prefix(some.consumed);
      if (text.empty() && count < ids.size()) {
        ids.resize(count);
        return ids;
      }
      ids.resize(ids.size() * 2);
    }
  }
  void reset() { (void)oxb_encoder_reset(get(), nullptr); }

 private:
  Encoder() = default;
  detail::Owned<oxb_encoder, oxb_encoder_destroy> encoder_;
};

/// Tokens to text. The model outlives it. Moved from, it is empty.
class Decoder {
 public:
  static Expected<Decoder> create(const Model& model,
                                  const oxb_decoder_options& options = DecoderOptions()) {
    Decoder made;
    const Status status = made.decoder_.make(
        "no memory for the decoder",
        [&](size_t* bytes, oxb_error* error) {
          return oxb_decoder_bytes(model.get(), &options, bytes, error);
        },
        [&](void* memory, size_t bytes, oxb_decoder** decoder, oxb_error* error) {
          return oxb_decoder_create(model.get(), &options, memory, bytes, decoder, error);
        });
    if (!status.ok()) return status;
    made.capacity_ = oxb_decoder_most_text(made.get());
    made.text_.reset(new (std::nothrow) char[made.capacity_]);
    if (made.text_ == nullptr) return Status(OXB_OUT_OF_MEMORY, "no memory for the decoder");
    return made;
  }

  oxb_decoder* get() const { return decoder_.get(); }
  /// The text is the decoder's own until the next call.
  Expected<std::string_view> run(int32_t id) {
    return text([&](size_t* count, oxb_error* error) {
      return oxb_decoder_run(get(), id, text_.get(), capacity_, count, error);
    });
  }
  Expected<std::string_view> finish() {
    return text([&](size_t* count, oxb_error* error) {
      return oxb_decoder_finish(get(), text_.get(), capacity_, count, error);
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

  detail::Owned<oxb_decoder, oxb_decoder_destroy> decoder_;
  std::unique_ptr<char[]> text_;
  size_t capacity_ = 0;
};

/// Moved from, it is empty.
class Sampler {
 public:
  static Expected<Sampler> create(uint32_t output_width,
                                  const oxb_sampler_options& options = SamplerOptions()) {
    Sampler made;
    const Status status = made.sampler_.make(
        "no memory for the sampler",
        [&](size_t* bytes, oxb_error* error) {
          return oxb_sampler_bytes(output_width, &options, bytes, error);
        },
        [&](void* memory, size_t bytes, oxb_sampler** sampler, oxb_error* error) {
          return oxb_sampler_create(output_width, &options, memory, bytes, sampler, error);
        });
    if (!status.ok()) return status;
    return made;
  }

  oxb_sampler* get() const { return sampler_.get(); }
  void accept(int32_t token) { (void)oxb_sampler_accept(get(), token, nullptr); }
  /// `logits` is one row of the output.
  Expected<int32_t> pick(std::span<const float> logits) {
    int32_t token = 0;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_sampler_pick(get(), logits.data(), logits.size(), &token, error);
    });
    if (!status.ok()) return status;
    return token;
  }

 private:
  Sampler() = default;
  detail::Owned<oxb_sampler, oxb_sampler_destroy> sampler_;
};

/// Moved from, it is empty.
class BeamSearch {
 public:
  struct Text {
    std::span<const int32_t> tokens;
    float score;
  };

  /// The session must outlive the search.
  static Expected<BeamSearch> create(Session& session,
                                     const oxb_beam_options& options = BeamOptions()) {
    BeamSearch made;
    const Status status = made.search_.make(
        "no memory for the beam search",
        [&](size_t* bytes, oxb_error* error) {
          return oxb_beam_search_bytes(session.get(), &options, bytes, error);
        },
        [&](void* memory, size_t bytes, oxb_beam_search** search, oxb_error* error) {
          return oxb_beam_search_create(session.get(), &options, memory, bytes, search, error);
        });
    if (!status.ok()) return status;
    return made;
  }

  oxb_beam_search* get() const { return search_.get(); }
  Status run(std::span<const int32_t> prompt = {}) {
    return Status::of([&](oxb_error* error) {
      return oxb_beam_search_run(get(), prompt.data(), prompt.size(), error);
    });
  }
  size_t count() const { return oxb_beam_search_count(get()); }
  Expected<Text> result(size_t index) const {
    const int32_t* tokens = nullptr;
    size_t count = 0;
    float score = 0.0f;
    const Status status = Status::of([&](oxb_error* error) {
      return oxb_beam_search_result(get(), index, &tokens, &count, &score, error);
    });
    if (!status.ok()) return status;
    return Text{{tokens, count}, score};
  }

 private:
  BeamSearch() = default;
  detail::Owned<oxb_beam_search, oxb_beam_search_destroy> search_;
};

/// Samples to the log-mel spectrogram that Whisper reads. Moved from, it is empty.
class LogMel {
 public:
  static Expected<LogMel> create(uint32_t bins, uint32_t frames) {
    LogMel made;
    const Status status = made.mel_.make(
        "no memory for the spectrogram",
        [&](size_t* bytes, oxb_error* error) {
          return oxb_log_mel_bytes(bins, frames, bytes, error);
        },
        [&](void* memory, size_t bytes, oxb_log_mel** mel, oxb_error* error) {
          return oxb_log_mel_create(bins, frames, memory, bytes, mel, error);
        });
    if (!status.ok()) return status;
    return made;
  }

  oxb_log_mel* get() const { return mel_.get(); }
  /// How many were taken; fewer only when the recording is full.
  size_t push(std::span<const float> samples) {
    size_t taken = 0;
    (void)oxb_log_mel_push(get(), samples.data(), samples.size(), &taken, nullptr);
    return taken;
  }
  /// `features` is [bins][frames].
  Status finish(std::span<float> features) {
    return Status::of([&](oxb_error* error) {
      return oxb_log_mel_finish(get(), features.data(), features.size(), error);
    });
  }
  void reset() { (void)oxb_log_mel_reset(get(), nullptr); }

 private:
  LogMel() = default;
  detail::Owned<oxb_log_mel, oxb_log_mel_destroy> mel_;
};

struct GeneratorOptions : oxb_generator_options {
  GeneratorOptions() : oxb_generator_options OXB_GENERATOR_OPTIONS_INIT {}
};

struct Piece : oxb_piece {
  Piece() : oxb_piece OXB_PIECE_INIT {}
  std::string_view view() const { return {text, text_bytes}; }
  /// It was the text's last.
  bool last() const { return end != OXB_END_NONE; }
};

struct Generation : oxb_generation {
  Generation() : oxb_generation OXB_GENERATION_INIT {}
};

/// Prompt in, text out. The session outlives it.
class Generator {
 public:
  static Expected<Generator> create(Session& session,
                                    const oxb_generator_options& options = GeneratorOptions()) {
    Generator made;
    const Status status = made.generator_.make(
        "no memory for the generator",
        [&](size_t* bytes, oxb_error* error) {
          return oxb_generator_bytes(session.get(), &options, bytes, error);
        },
        [&](void* memory, size_t bytes, oxb_generator** generator, oxb_error* error) {
          return oxb_generator_create(session.get(), &options, memory, bytes, generator, error);
        });
    if (!status.ok()) return status;
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
  void cancel() { (void)oxb_generator_cancel(get()); }
  void reset() { (void)oxb_generator_reset(get(), nullptr); }
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
  Generator() = default;
  detail::Owned<oxb_generator, oxb_generator_destroy> generator_;
};

/// Nearest vectors in a table that the caller has, such as a mapped file: oxbow_index.h.
namespace index {

inline Expected<size_t> bytes(uint64_t count, uint32_t width, oxb_metric metric) {
  size_t bytes = 0;
  const Status status = Status::of(
      [&](oxb_error* error) { return oxb_index_bytes(count, width, metric, &bytes, error); });
  if (!status.ok()) return status;
  return bytes;
}
/// An empty table in `memory`, which is aligned to 64.
inline Status create(std::span<std::byte> memory, uint64_t count, uint32_t width,
                     oxb_metric metric) {
  return Status::of([&](oxb_error* error) {
    return oxb_index_create(memory.data(), memory.size(), count, width, metric, error);
  });
}
inline Expected<oxb_index_info> info(std::span<const std::byte> table) {
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  const Status status = Status::of([&](oxb_error* error) {
    return oxb_index_get_info(table.data(), table.size(), &info, error);
  });
  if (!status.ok()) return status;
  return info;
}
/// `vectors` are one or more of the table's width.
inline Status put(std::span<std::byte> table, uint64_t first, std::span<const float> vectors) {
  const Expected<oxb_index_info> of = info(table);
  if (!of) return of.status();
  if (vectors.size() % of->width != 0) {
    return Status(OXB_INVALID_ARGUMENT, "vectors: the numbers are no multiple of the width");
  }
  return Status::of([&](oxb_error* error) {
    return oxb_index_put(table.data(), table.size(), first, vectors.data(),
                         vectors.size() / of->width, error);
  });
}
/// The `k` best of vectors `first` to `first + count` for each query; ids and scores: [queries][k].
inline Status search(std::span<const std::byte> table, std::span<const float> queries,
                     uint64_t first, uint64_t count, uint32_t k, std::span<uint64_t> ids,
                     std::span<float> scores) {
  const Expected<oxb_index_info> of = info(table);
  if (!of) return of.status();
  if (queries.size() % of->width != 0) {
    return Status(OXB_INVALID_ARGUMENT, "queries: the numbers are no multiple of the width");
  }
  const size_t query_count = queries.size() / of->width;
  const size_t results = query_count * k;
  if (ids.size() < results || scores.size() < results) {
    return Status(OXB_BUFFER_TOO_SMALL, "ids and scores: each query has k of both");
  }
  return Status::of([&](oxb_error* error) {
    return oxb_index_search(table.data(), table.size(), queries.data(), query_count, first, count,
                            k, ids.data(), scores.data(), error);
  });
}

}  // namespace index

}  // namespace oxb

#endif  // C++20
