// The native methods of dev.oxbow.Generator: the loop that turns a stream into text. It calls back into Java with numbers
// only, over a byte array that Java gave, so it creates no references however long it runs.

#include <algorithm>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

jclass run_class = nullptr;
jmethodID on_step = nullptr;

/// In the order of Generation.Reason.
enum Reason : jlong { kEndOfText, kMaxTokens, kStopText, kCancelled, kStreamFull };
constexpr int kReasonBits = 8;

/// Takes on the stop texts, which follow each other in `words`.
bool take_stop_texts(JNIEnv* env, Generator* generator, jbyteArray words, jintArray lengths,
                     size_t most_text) {
  const jsize bytes = env->GetArrayLength(words);
  const jsize count = env->GetArrayLength(lengths);
  if (!generator->stop_words.allocate(env, static_cast<size_t>(bytes)) ||
      !generator->stop_lengths.allocate(env, static_cast<size_t>(count), sizeof(int32_t)) ||
      !read_array(env, words, 0, bytes, generator->stop_words.as<char>()) ||
      !read_array(env, lengths, 0, count, generator->stop_lengths.as<int32_t>())) {
    return false;
  }
  const auto* all = generator->stop_lengths.as<int32_t>();
  int64_t total = 0;
  int32_t longest = 0;
  bool sound = true;
  for (jsize i = 0; i < count; ++i) {
    sound = sound && all[i] > 0;
    total += all[i];
    longest = std::max(longest, all[i]);
  }
  if (!sound || total != bytes) {
    throw_java(env, OXB_INVALID_ARGUMENT, "a stop text is empty");
    return false;
  }
  return generator->held.allocate(env, static_cast<size_t>(longest) + most_text);
}

jlong create(JNIEnv* env, jobject, jlong model_handle, jfloat temperature, jint top_k, jfloat top_p,
             jfloat penalty, jint window, jlong seed, jbyteArray stop_words,
             jintArray stop_lengths) {
  const Use<Model> model(env, model_handle);
  Draft<Generator> generator(env);
  if (!model || !generator) return 0;
  generator->model.keep(model.get());
  generator->sampling = sampler_options(temperature, top_k, top_p, penalty, window, seed);
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  (void)oxb_model_get_info(model->model, &info, nullptr);
  size_t sampler_bytes = 0, decoder_bytes = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env,
             oxb_sampler_bytes(info.output_width, &generator->sampling, &sampler_bytes, &error),
             error) ||
      !check(env, oxb_decoder_bytes(model->model, nullptr, &decoder_bytes, &error), error) ||
      !generator->sampler_memory.allocate(env, sampler_bytes) ||
      !generator->decoder_memory.allocate(env, decoder_bytes) ||
      !check(env,
             oxb_decoder_create(model->model, nullptr, generator->decoder_memory.get(),
                                decoder_bytes, &generator->decoder, &error),
             error)) {
    return 0;
  }
  const size_t most_text = oxb_decoder_most_text(generator->decoder);
  if (!generator->text.allocate(env, most_text) ||
      !take_stop_texts(env, generator.get(), stop_words, stop_lengths, most_text)) {
    return 0;
  }
  return generator.finish();
}

jint piece_bytes(JNIEnv* env, jobject, jlong handle) {
  const Use<Generator> generator(env, handle);
  return generator ? static_cast<jint>(generator->held.size()) : 0;
}

/// One call of generate().
class Run {
 public:
  Run(JNIEnv* env, Generator* generator, Session* session, jobject listener, jbyteArray piece)
      : env_(env),
        generator_(*generator),
        session_(*session),
        listener_(listener),
        piece_(piece),
        decoder_(generator->decoder) {}
  ~Run() {
    // Half a character of this text is not the beginning of the next.
    size_t ignored = 0;
    oxb_decoder_finish(decoder_, text(), generator_.text.size(), &ignored, nullptr);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Why the text ended and its tokens, as Generator.java takes it apart. With a Java exception: 0.
  jlong generate(jintArray prompt, jint count, jint first_token, jlong max_tokens) {
    generator_.stop.start(generator_.stop_words.as<char>(), generator_.stop_lengths.as<int32_t>(),
                          generator_.stop_lengths.size() / sizeof(int32_t),
                          generator_.held.as<char>());
    if (!check(env_,
               oxb_sampler_create(session_.output_width, &generator_.sampling,
                                  generator_.sampler_memory.get(), generator_.sampler_memory.size(),
                                  &sampler_, &error_),
               error_) ||
        !feed_prompt(prompt, count, first_token)) {
      return result(kCancelled);
    }
    const Reason reason = write(max_tokens);
    const bool complete = reason != kCancelled && reason != kStopText;
    if (complete && !env_->ExceptionCheck()) end_text();
    return result(reason);
  }

 private:
  jlong result(Reason reason) const { return tokens_ << kReasonBits | reason; }
  char* text() { return generator_.text.as<char>(); }

  /// Shows `bytes` of the text that may be shown. False when no more is wanted, maybe because of an exception.
  bool step(size_t bytes) {
    if (bytes > 0) {
      if (!write_array(env_, piece_, bytes, generator_.stop.text())) return false;
      generator_.stop.drop(bytes);
    }
    const jboolean more =
        env_->CallBooleanMethod(listener_, on_step, prompt_tokens_, static_cast<jint>(bytes));
    return !env_->ExceptionCheck() && more == JNI_TRUE && !generator_.closed() &&
           !session_.closed();
  }

  bool feed_prompt(jintArray prompt, jint count, jint first_token) {
    if (count == 0) return feed_nothing(first_token);
    for (jint done = 0; done < count; prompt_tokens_ = done) {
      if (!step(0)) return false;
      const auto some =
          static_cast<jint>(std::min(static_cast<uint32_t>(count - done), session_.max_segment));
      auto* tokens = session_.tokens.as<int32_t>();
      if (!read_array(env_, prompt, done, some, tokens)) return false;
      done += some;
      for (jint i = 0; i < some; ++i) (void)oxb_sampler_accept(sampler_, tokens[i], nullptr);
      if (!check(env_, session_.run(tokens, static_cast<size_t>(some), done == count, &error_),
                 error_)) {
        return false;
      }
    }
    return step(0);
  }

  /// Goes on where the stream is.
  bool feed_nothing(jint first_token) {
    if (!session_.has_logits) {
      uint64_t position = 0;
      (void)oxb_session_position(session_.session, &position, nullptr);
      if (position != 0) {
        throw_java(env_, OXB_INVALID_ARGUMENT,
                   "there is no prompt, and no logits to go on from: feed a token first");
        return false;
      }
      (void)oxb_sampler_accept(sampler_, first_token, nullptr);
      if (!check(env_, session_.run(&first_token, 1, true, &error_), error_)) return false;
      prompt_tokens_ = 1;
    }
    return step(0);
  }

  /// Picks, shows and feeds tokens. What was picked is always fed, also when nothing more is wanted.
  Reason write(jlong max_tokens) {
    while (tokens_ < max_tokens) {
      int32_t token = 0;
      if (!check(env_,
                 oxb_sampler_pick(sampler_, session_.logits.as<float>(), session_.output_width,
                                  &token, &error_),
                 error_)) {
        return kCancelled;
      }
      const bool ends = oxb_model_ends_text(*session_.model, token) != 0;
      bool more = true;
      if (!ends) {
        ++tokens_;
        more = show(token);
      }
      (void)oxb_sampler_accept(sampler_, token, nullptr);
      const oxb_status status = session_.run(&token, 1, true, &error_);
      if (ends && (status == OXB_OK || status == OXB_STREAM_FULL)) return kEndOfText;
      if (generator_.stop.reached()) return kStopText;
      if (!more) return kCancelled;
      if (status == OXB_STREAM_FULL) return kStreamFull;
      if (!check(env_, status, error_)) return kCancelled;
    }
    return kMaxTokens;
  }

  bool show(int32_t token) {
    size_t bytes = 0;
    if (!check(env_,
               oxb_decoder_run(decoder_, token, text(), generator_.text.size(), &bytes, &error_),
               error_)) {
      return false;
    }
    return step(generator_.stop.add(text(), bytes));
  }

  /// What waited for a token that does not come.
  void end_text() {
    size_t bytes = 0;
    if (!check(env_, oxb_decoder_finish(decoder_, text(), generator_.text.size(), &bytes, &error_),
               error_)) {
      return;
    }
    const size_t shown = generator_.stop.add(text(), bytes);
    if (shown > 0 && !step(shown)) return;
    if (const size_t rest = generator_.stop.finish(); rest > 0) step(rest);
  }

  JNIEnv* env_;
  Generator& generator_;
  Session& session_;
  jobject listener_;
  jbyteArray piece_;
  oxb_decoder* decoder_;
  oxb_sampler* sampler_ = nullptr;
  jlong prompt_tokens_ = 0;
  jlong tokens_ = 0;
  oxb_error error_ = OXB_ERROR_INIT;
};

jlong generate(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jintArray prompt,
               jint count, jint first_token, jlong max_tokens, jobject run, jbyteArray piece) {
  const Use<Generator> generator(env, handle);
  if (!generator) return 0;
  const Use<Session> session(env, session_handle);
  if (!session) return 0;
  if (session->model.get() != generator->model.get()) {
    throw_java(env, OXB_INVALID_ARGUMENT, "the session is of another model");
    return 0;
  }
  return Run(env, generator.get(), session.get(), run, piece)
      .generate(prompt, count, first_token, max_tokens);
}

}  // namespace

bool register_generator(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("create", "(JFIFFIJ[B[I)J", create),
      method("pieceBytes", "(J)I", piece_bytes),
      method("generate", "(JLdev/oxbow/Session;J[IIIJLdev/oxbow/Generator$Run;[B)J", generate),
  };
  if (!register_methods(env, "dev/oxbow/Generator", methods)) return false;
  const jclass local = env->FindClass("dev/oxbow/Generator$Run");
  if (local == nullptr) return false;
  run_class = static_cast<jclass>(env->NewGlobalRef(local));
  env->DeleteLocalRef(local);
  if (run_class == nullptr) return false;
  on_step = env->GetMethodID(run_class, "onStep", "(JI)Z");
  return on_step != nullptr;
}

void forget_generator(JNIEnv* env) {
  env->DeleteGlobalRef(run_class);
  run_class = nullptr;
}

}  // namespace oxbow::jni
