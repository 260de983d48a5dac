// The native methods of dev.oxbow.Generator, over oxb_generator. Text goes to Java in a byte array that Java gave, so a
// generation creates no references however long it runs.

#include <algorithm>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

jclass run_class = nullptr;
jmethodID on_step = nullptr;

/// Bytes of a prompt that are given at a time, so that it can be cancelled, and its progress told.
constexpr jint kPromptBytes = 512;

/// Place of what was given of the prompt in the numbers that Java reads, and what stands there once tokens are picked.
constexpr jsize kGivenPlace = 6;
constexpr jlong kAllGiven = -1;

/// Texts one after the other in `bytes` become terminated ones, and `texts` points to them.
bool take_texts(JNIEnv* env, jbyteArray bytes, jintArray lengths, Memory* words, Memory* texts) {
  const jsize total = env->GetArrayLength(bytes);
  const jsize count = env->GetArrayLength(lengths);
  Memory all, sizes;
  if (!all.allocate(env, static_cast<size_t>(total)) ||
      !sizes.allocate(env, static_cast<size_t>(count), sizeof(int32_t)) ||
      !read_array(env, bytes, 0, total, all.as<char>()) ||
      !read_array(env, lengths, 0, count, sizes.as<int32_t>()) ||
      !words->allocate(env, static_cast<size_t>(total) + static_cast<size_t>(count)) ||
      !texts->allocate(env, static_cast<size_t>(count), sizeof(const char*))) {
    return false;
  }
  const char* from = all.as<char>();
  char* to = words->as<char>();
  int64_t left = total;
  for (jsize i = 0; i < count; ++i) {
    const int32_t length = sizes.as<int32_t>()[i];
    if (length <= 0 || length > left) {
      throw_java(env, OXB_INVALID_ARGUMENT, "a text is empty");
      return false;
    }
    texts->as<const char*>()[i] = to;
    to = std::copy_n(from, length, to);
    *to++ = '\0';
    from += length;
    left -= length;
  }
  return true;
}

using Both = WithSession<Generator>;

jlong create(JNIEnv* env, jobject, jobject, jlong session_handle, jboolean advised,
             jfloat temperature, jint top_k, jfloat top_p, jfloat penalty, jint window, jlong seed,
             jbyteArray stop_texts, jintArray stop_lengths, jlong max_tokens, jint undo_turns,
             jint max_word_bytes, jboolean literal, jboolean add_template) {
  const Use<Session> session(env, session_handle);
  Draft<Generator> generator(env);
  Memory words, texts;
  if (!session || !generator || !take_texts(env, stop_texts, stop_lengths, &words, &texts)) {
    return 0;
  }
  generator->model.keep(session->model.get());
  generator->session_handle = session_handle;
  const oxb_sampler_options sampling =
      sampler_options(temperature, top_k, top_p, penalty, window, seed);
  oxb_generator_options options = OXB_GENERATOR_OPTIONS_INIT;
  if (advised == JNI_FALSE) options.sampling = &sampling;
  options.stop_texts = texts.as<const char*>();
  options.stop_text_count = texts.size() / sizeof(const char*);
  options.max_tokens = static_cast<uint64_t>(max_tokens);
  options.undo_turns = static_cast<uint32_t>(undo_turns);
  options.max_word_bytes = static_cast<uint32_t>(max_word_bytes);
  options.literal_text = literal == JNI_TRUE;
  options.no_template = add_template != JNI_TRUE;
  size_t bytes = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_generator_bytes(session->session, &options, &bytes, &error), error) ||
      !generator->memory.allocate(env, bytes) ||
      !check(env,
             oxb_generator_create(session->session, &options, generator->memory.get(), bytes,
                                  &generator->generator, &error),
             error)) {
    return 0;
  }
  return generator.finish();
}

/// Tokens of the prompt, tokens of the text, position, nanoseconds of both, choice: as Generation.java reads them. Behind
/// them, for Generator.java, how much of the prompt was given.
void tell_progress(JNIEnv* env, const Both& both, jlongArray numbers) {
  if (env->ExceptionCheck()) return;
  oxb_generation now = OXB_GENERATION_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_generator_progress(both->generator, &now, &error), error)) return;
  const jlong all[] = {static_cast<jlong>(now.prompt_tokens),
                       static_cast<jlong>(now.tokens),
                       static_cast<jlong>(now.position),
                       static_cast<jlong>(now.prompt_nanoseconds),
                       static_cast<jlong>(now.token_nanoseconds),
                       now.choice,
                       kAllGiven};
  env->SetLongArrayRegion(numbers, 0, static_cast<jsize>(std::size(all)), all);
}

/// One call of generate().
class Run {
 public:
  Run(JNIEnv* env, const Both& both, jobject listener, jbyteArray piece, jlongArray numbers)
      : env_(env), both_(both), listener_(listener), piece_(piece), numbers_(numbers) {
    most_ = static_cast<size_t>(std::max(env->GetArrayLength(piece), 4));
  }

  /// False: no more is wanted, maybe because of an exception.
  bool step(size_t bytes) {
    const jboolean more = env_->CallBooleanMethod(listener_, on_step, static_cast<jint>(bytes));
    return !env_->ExceptionCheck() && more == JNI_TRUE && !both_.closed();
  }

  /// So much of the prompt was given.
  bool step_of_prompt(jint given) {
    const jlong number = given;
    env_->SetLongArrayRegion(numbers_, kGivenPlace, 1, &number);
    return step(0);
  }

  /// As many steps as the array is too small for it.
  bool show(const char* text, size_t bytes) {
    do {
      size_t count = std::min(bytes, most_);
      while (count < bytes && (text[count] & 0xc0) == 0x80) --count;
      if (!write_array(env_, piece_, count, text) || !step(count)) return false;
      text += count;
      bytes -= count;
    } while (bytes > 0);
    return true;
  }

  /// Why the text ended; with a Java exception: anything.
  int32_t write(jlong max_tokens) {
    oxb_error error = OXB_ERROR_INIT;
    oxb_piece piece = OXB_PIECE_INIT;
    if (max_tokens == 0) return OXB_END_MAX_TOKENS;
    do {
      if (!check(env_, oxb_generator_next(both_->generator, &piece, &error), error)) {
        return OXB_END_CANCELLED;
      }
      both_.session().has_logits = false;
      tell_progress(env_, both_, numbers_);
      if (!show(piece.text, piece.text_bytes) && piece.end == OXB_END_NONE) {
        return OXB_END_CANCELLED;
      }
    } while (piece.end == OXB_END_NONE && !env_->ExceptionCheck());
    return piece.end;
  }

 private:
  JNIEnv* env_;
  const Both& both_;
  jobject listener_;
  jbyteArray piece_;
  jlongArray numbers_;
  size_t most_ = 0;
};

/// The rest of a prompt that nobody wants any more must not begin the next one.
void drop_prompt(const Both& both) {
  oxb_piece ignored = OXB_PIECE_INIT;
  oxb_generator_cancel(both->generator);
  oxb_generator_next(both->generator, &ignored, nullptr);
}

bool add_text(JNIEnv* env, const Both& both, Run& run, jbyteArray text) {
  const jint bytes = env->GetArrayLength(text);
  char part[kPromptBytes];
  oxb_error error = OXB_ERROR_INIT;
  for (jint done = 0; done < bytes;) {
    const jint count = std::min(bytes - done, kPromptBytes);
    if (!run.step_of_prompt(done) || !read_array(env, text, done, count, part) ||
        !check(env,
               oxb_generator_add_text(both->generator, part, static_cast<size_t>(count), &error),
               error)) {
      drop_prompt(both);
      return false;
    }
    done += count;
  }
  // A text without anything has what the model expects around one.
  if (bytes == 0)
    return check(env, oxb_generator_add_text(both->generator, part, 0, &error), error);
  return true;
}

bool add_tokens(JNIEnv* env, const Both& both, Run& run, jintArray tokens) {
  const jint count = env->GetArrayLength(tokens);
  Session& session = both.session();
  oxb_error error = OXB_ERROR_INIT;
  for (jint done = 0; done < count;) {
    const jint some = std::min(count - done, static_cast<jint>(session.max_segment));
    if (!run.step_of_prompt(done) ||
        !read_array(env, tokens, done, some, session.tokens.as<int32_t>()) ||
        !check(env,
               oxb_generator_add_tokens(both->generator, session.tokens.as<int32_t>(),
                                        static_cast<size_t>(some), &error),
               error)) {
      return false;
    }
    done += some;
  }
  return true;
}

/// A role of -1: a text that is no message.
bool add_message(JNIEnv* env, const Both& both, jint role, jbyteArray text) {
  const jint bytes = env->GetArrayLength(text);
  Memory memory;
  oxb_error error = OXB_ERROR_INIT;
  return memory.allocate(env, static_cast<size_t>(bytes)) &&
         read_array(env, text, 0, bytes, memory.as<char>()) &&
         check(env,
               role < 0 ? oxb_generator_add_text(both->generator, memory.as<char>(),
                                                 static_cast<size_t>(bytes), &error)
                        : oxb_generator_add_message(both->generator, role, memory.as<char>(),
                                                    static_cast<size_t>(bytes), &error),
               error);
}

/// `text` or `tokens` is null; `role` is that of a message, or -1. Returns why the text ended.
jint generate(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jint role,
              jbyteArray text, jintArray tokens, jlong max_tokens, jobject listener,
              jbyteArray piece, jlongArray numbers) {
  const Both both(env, handle, session_handle);
  if (!both) return 0;
  both.session().has_logits = false;
  Run run(env, both, listener, piece, numbers);
  // What is known of the text before is not of this one.
  if (!run.step_of_prompt(0)) return OXB_END_CANCELLED;
  const jint size = env->GetArrayLength(text != nullptr ? jarray{text} : jarray{tokens});
  bool added = true;
  if (text != nullptr && role >= 0) added = add_message(env, both, role, text);
  if (text != nullptr && role < 0) added = add_text(env, both, run, text);
  if (tokens != nullptr) added = add_tokens(env, both, run, tokens);
  const int32_t end = added && run.step_of_prompt(size) ? run.write(max_tokens) : OXB_END_CANCELLED;
  tell_progress(env, both, numbers);
  return end;
}

void say(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jint role,
         jbyteArray text) {
  const Both both(env, handle, session_handle);
  if (both) add_message(env, both, role, text);
}

void undo(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle) {
  const Both both(env, handle, session_handle);
  if (!both) return;
  oxb_error error = OXB_ERROR_INIT;
  both.session().has_logits = false;
  check(env, oxb_generator_undo(both->generator, &error), error);
}

void reset(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle) {
  const Both both(env, handle, session_handle);
  if (!both) return;
  both.session().has_logits = false;
  oxb_generator_reset(both->generator, nullptr);
}

void constrain(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jint kind,
               jbyteArray texts, jintArray lengths) {
  const Both both(env, handle, session_handle);
  if (!both) return;
  oxb_error error = OXB_ERROR_INIT;
  if (kind != OXB_CONSTRAINT_CHOICES) {
    check(env, oxb_generator_set_constraint(both->generator, kind, &error), error);
    return;
  }
  // The generator keeps no copy, so what it has now must stay until it has the new ones.
  Memory words, pointers;
  if (!take_texts(env, texts, lengths, &words, &pointers) ||
      !check(env,
             oxb_generator_set_choices(both->generator, pointers.as<const char*>(),
                                       pointers.size() / sizeof(const char*), &error),
             error)) {
    return;
  }
  both->choice_words.swap(words);
  both->choices.swap(pointers);
}

jlong state_bytes(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle) {
  const Both both(env, handle, session_handle);
  return both ? static_cast<jlong>(oxb_generator_state_bytes(both->generator)) : 0;
}

void state(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jboolean load,
           jobject buffer, jint position, jint length) {
  const Both both(env, handle, session_handle);
  Bytes bytes;
  const Intent intent = load == JNI_TRUE ? Intent::kRead : Intent::kWrite;
  if (!both || !direct_bytes(env, buffer, position, length, intent, &bytes)) return;
  oxb_error error = OXB_ERROR_INIT;
  both.session().has_logits = false;
  check(env,
        load == JNI_TRUE ? oxb_generator_load(both->generator, bytes.data, bytes.size, &error)
                         : oxb_generator_save(both->generator, bytes.data, bytes.size, &error),
        error);
}

}  // namespace

bool register_generator(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("create", "(Ldev/oxbow/Session;JZFIFFIJ[B[IJIIZZ)J", create),
      method("generate", "(JLdev/oxbow/Session;JI[B[IJLdev/oxbow/Generator$Run;[B[J)I", generate),
      method("say", "(JLdev/oxbow/Session;JI[B)V", say),
      method("undo", "(JLdev/oxbow/Session;J)V", undo),
      method("reset", "(JLdev/oxbow/Session;J)V", reset),
      method("constrain", "(JLdev/oxbow/Session;JI[B[I)V", constrain),
      method("stateBytes", "(JLdev/oxbow/Session;J)J", state_bytes),
      method("state", "(JLdev/oxbow/Session;JZLjava/nio/ByteBuffer;II)V", state),
  };
  if (!register_methods(env, "dev/oxbow/Generator", methods)) return false;
  const jclass local = env->FindClass("dev/oxbow/Generator$Run");
  if (local == nullptr) return false;
  run_class = static_cast<jclass>(env->NewGlobalRef(local));
  env->DeleteLocalRef(local);
  if (run_class == nullptr) return false;
  on_step = env->GetMethodID(run_class, "onStep", "(I)Z");
  return on_step != nullptr;
}

void forget_generator(JNIEnv* env) {
  env->DeleteGlobalRef(run_class);
  run_class = nullptr;
}

}  // namespace oxbow::jni
