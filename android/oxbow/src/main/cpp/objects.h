#pragma once

// The native objects behind the Java ones. Each is destroyed by the table of handles.

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "android/oxbow/src/main/cpp/handles.h"
#include "android/oxbow/src/main/cpp/java.h"
#include "runtime/api/oxbow.h"

namespace oxbow::jni {

/// Memory of an object, freed with it.
class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// False, with a Java exception, when there is none.
  bool allocate(JNIEnv* env, size_t bytes);
  /// The same for `count` things of that size.
  bool allocate(JNIEnv* env, size_t count, size_t bytes_of_one);
  void swap(Memory& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void* get() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// A direct buffer of the application that is used until the object is destroyed: neither collected nor lent twice.
class LentBuffer {
 public:
  /// False, with a Java exception, when it is no direct buffer or others use it.
  bool borrow(JNIEnv* env, jobject buffer, jint position, jint length, Intent intent);
  void give_back(JNIEnv* env);
  std::byte* data() const { return data_; }
  size_t size() const { return claim_.bytes; }

 private:
  jobject buffer_ = nullptr;
  std::byte* data_ = nullptr;
  Claim claim_;
};

/// Who hears of a model's log, or of an accelerator's: a LogSink of Java. Lines come on threads that made a call, all of
/// them Java's; those of other threads are dropped.
class LogReference {
 public:
  /// `sink` may be null. False, with a Java exception, when there is no memory.
  bool keep(JNIEnv* env, jobject sink);
  void drop(JNIEnv* env);
  /// Asks for the lines, if there is a sink.
  void listen(oxb_log_callback* log, void** context);

 private:
  static void write(void* self, oxb_log_level level, const char* text);

  jobject sink_ = nullptr;
};

struct Model final : Object {
  static constexpr Kind kKind = Kind::kModel;
  Model() : Object(kKind, Sharing::kAnyCalls) {}
  void destroy(JNIEnv* env) override;
  size_t bytes() const override { return read_bytes; }

  oxb_model* model = nullptr;
  /// The file, or where it was read to.
  LentBuffer buffer;
  LogReference log;
  /// Read into memory of the library's own.
  size_t read_bytes = 0;
};

struct Npu final : Object {
  static constexpr Kind kKind = Kind::kNpu;
  Npu() : Object(kKind, Sharing::kAnyCalls) {}
  void destroy(JNIEnv* env) override;
  /// What its layers take is counted by their sessions.
  size_t bytes() const override { return 0; }

  oxb_npu* npu = nullptr;
  LogReference log;
};

/// What keeps an object while another one uses it, closed or not.
template <typename T>
class Reference {
 public:
  /// `object` may be null.
  void keep(T* object) {
    if (object != nullptr) Handles::keep(object);
    object_ = object;
  }
  void drop(JNIEnv* env) {
    if (object_ != nullptr) Handles::drop(env, object_);
    object_ = nullptr;
  }
  T* get() const { return object_; }

 private:
  T* object_ = nullptr;
};

struct Session final : Object {
  static constexpr Kind kKind = Kind::kSession;
  Session() : Object(kKind, Sharing::kOneCall) {}
  void destroy(JNIEnv* env) override;
  size_t bytes() const override {
    return own_arena.size() + backend_bytes + tokens.size() + logits.size();
  }

  /// Runs 1 to max_segment tokens. With `keep_logits` those of the last are kept.
  oxb_status run(const int32_t* ids, size_t count, bool keep_logits, oxb_error* error);

  /// After a run with this status: whether the logits are those of the last token.
  void moved(oxb_status status, bool kept_logits);

  /// Borrows from that one, and uses an accelerator; both may be null.
  void use(Session* other, Npu* accelerator) {
    lender.keep(other);
    npu.keep(accelerator);
    if (other != nullptr) join(other);
  }

  Reference<Model> model;
  Reference<Session> lender;
  Reference<Npu> npu;
  oxb_session* session = nullptr;
  size_t arena_bytes = 0;
  /// One of the two holds the arena.
  Memory own_arena;
  LentBuffer lent_arena;
  uint32_t max_segment = 0;
  /// Most tokens that any part of the model takes at once, for which there is room in `tokens`.
  uint32_t most_tokens = 0;
  Memory tokens;
  uint32_t output_width = 0;
  /// Of the last token, if has_logits.
  Memory logits;
  bool has_logits = false;
  size_t backend_bytes = 0;
  /// Of the last draft.
  Memory draft;
};

struct Sampler final : Object {
  static constexpr Kind kKind = Kind::kSampler;
  Sampler() : Object(kKind, Sharing::kOneCall) {}
  void destroy(JNIEnv*) override {}
  size_t bytes() const override { return memory.size(); }

  Memory memory;
  oxb_sampler* sampler = nullptr;
  uint32_t vocabulary = 0;
};

struct Tokenizer final : Object {
  static constexpr Kind kKind = Kind::kTokenizer;
  Tokenizer() : Object(kKind, Sharing::kOneCall) {}
  void destroy(JNIEnv* env) override;
  size_t bytes() const override {
    return encoder_memory.size() + decoder_memory.size() + text.size() + ids.size();
  }

  Reference<Model> model;
  Memory encoder_memory, decoder_memory;
  oxb_encoder* encoder = nullptr;
  oxb_decoder* decoder = nullptr;
  /// Where pieces of texts and tokens are put to and taken from.
  Memory text, ids;
};

struct Generator final : Object {
  static constexpr Kind kKind = Kind::kGenerator;
  Generator() : Object(kKind, Sharing::kOneCall) {}
  void destroy(JNIEnv* env) override;
  size_t bytes() const override { return memory.size(); }

  Reference<Model> model;
  /// The session it was made for, which every call brings along and thereby keeps.
  jlong session_handle = 0;
  Memory memory;
  oxb_generator* generator = nullptr;
  /// What it may choose from.
  Memory choice_words, choices;
};

struct BeamSearch final : Object {
  static constexpr Kind kKind = Kind::kBeamSearch;
  BeamSearch() : Object(kKind, Sharing::kOneCall) {}
  void destroy(JNIEnv* env) override;
  size_t bytes() const override { return memory.size(); }

  /// Its beams borrow from this one.
  Reference<Session> session;
  jlong session_handle = 0;
  Memory memory;
  oxb_beam_search* search = nullptr;
};

struct LogMel final : Object {
  static constexpr Kind kKind = Kind::kLogMel;
  LogMel() : Object(kKind, Sharing::kOneCall) {}
  void destroy(JNIEnv*) override { oxb_log_mel_destroy(mel); }
  size_t bytes() const override { return memory.size(); }

  Memory memory;
  oxb_log_mel* mel = nullptr;
};

/// An object and the session it was made for, both for this call.
template <typename T>
class WithSession {
 public:
  WithSession(JNIEnv* env, jlong handle, jlong session_handle)
      : object_(env, handle), session_(env, object_ ? session_handle : 0) {
    if (!*this || object_->session_handle == session_handle) return;
    throw_java(env, OXB_INVALID_ARGUMENT, "the session is not the one it was made for");
    mine_ = false;
  }
  explicit operator bool() const { return mine_ && object_ && session_; }
  T* operator->() const { return object_.get(); }
  Session& session() const { return *session_.get(); }
  bool closed() const { return object_->closed() || session_->closed(); }

 private:
  Use<T> object_;
  Use<Session> session_;
  bool mine_ = true;
};

/// Bytes of Java as a text with an end. False, with a Java exception, when there is no memory.
bool take_text(JNIEnv* env, jbyteArray bytes, Memory* text);

/// Options of a session from the numbers of SessionOptions.java, with the objects that they name, in use for this call.
/// Null numbers are the default options.
class SessionOptions {
 public:
  SessionOptions(JNIEnv* env, jlongArray numbers);

  /// False, with a Java exception, when an object is closed or in use.
  explicit operator bool() const { return ready_; }
  oxb_session_options& get() { return options_; }
  Session* lender() const { return lender_ ? lender_->get() : nullptr; }
  Npu* npu() const { return npu_ ? npu_->get() : nullptr; }

 private:
  oxb_session_options options_ = OXB_SESSION_OPTIONS_INIT;
  std::optional<Use<Session>> lender_;
  std::optional<Use<Npu>> npu_;
  bool ready_ = false;
};

/// Options from their Java fields.
oxb_sampler_options sampler_options(jfloat temperature, jint top_k, jfloat top_p, jfloat penalty,
                                    jint window, jlong seed);

/// An object under construction: given a handle when it is complete, else destroyed.
template <typename T>
class Draft {
 public:
  /// False, with a Java exception, when there is no memory.
  explicit Draft(JNIEnv* env) : env_(env), object_(new (std::nothrow) T) {
    if (object_ == nullptr) throw_java(env, OXB_OUT_OF_MEMORY, "no memory");
  }
  ~Draft() {
    if (object_ != nullptr) Handles::discard(env_, object_);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  explicit operator bool() const { return object_ != nullptr; }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  /// 0, with a Java exception, when there is no handle for it.
  jlong finish() {
    T* complete = object_;
    object_ = nullptr;
    return Handles::add(env_, complete);
  }

 private:
  JNIEnv* env_;
  T* object_;
};

bool register_library(JNIEnv* env);
bool register_model(JNIEnv* env);
bool register_session(JNIEnv* env);
bool register_npu(JNIEnv* env);
bool register_entries(JNIEnv* env);
bool register_beam_search(JNIEnv* env);
bool register_log_mel(JNIEnv* env);
bool register_index(JNIEnv* env);
bool find_log(JNIEnv* env);
void forget_log(JNIEnv* env);
bool register_sampler(JNIEnv* env);
bool register_tokenizer(JNIEnv* env);
bool register_generator(JNIEnv* env);
void forget_generator(JNIEnv* env);

}  // namespace oxbow::jni
