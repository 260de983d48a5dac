// The native methods of dev.oxbow.BeamSearch.

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

using Both = WithSession<BeamSearch>;

jlong create(JNIEnv* env, jobject, jobject, jlong session_handle, jint beams, jint n_best,
             jint max_tokens, jint min_tokens, jdouble length_penalty, jint stop) {
  const Use<Session> session(env, session_handle);
  Draft<BeamSearch> search(env);
  if (!session || !search) return 0;
  search->session.keep(session.get());
  search->session_handle = session_handle;
  oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
  options.beams = static_cast<uint32_t>(beams);
  options.n_best = static_cast<uint32_t>(n_best);
  options.max_tokens = static_cast<uint32_t>(max_tokens);
  options.min_tokens = static_cast<uint32_t>(min_tokens);
  options.length_penalty = length_penalty;
  options.stop = stop;
  size_t bytes = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_beam_search_bytes(session->session, &options, &bytes, &error), error) ||
      !search->memory.allocate(env, bytes) ||
      !check(env,
             oxb_beam_search_create(session->session, &options, search->memory.get(), bytes,
                                    &search->search, &error),
             error)) {
    return 0;
  }
  return search.finish();
}

/// How many texts it found.
jint run(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jintArray prompt) {
  const Both both(env, handle, session_handle);
  if (!both) return 0;
  const jsize count = env->GetArrayLength(prompt);
  Memory tokens;
  if (!tokens.allocate(env, static_cast<size_t>(count), sizeof(int32_t)) ||
      !read_array(env, prompt, 0, count, tokens.as<int32_t>())) {
    return 0;
  }
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status =
      oxb_beam_search_run(both->search, tokens.as<int32_t>(), static_cast<size_t>(count), &error);
  both.session().moved(status, false);
  if (!check(env, status, error)) return 0;
  return static_cast<jint>(oxb_beam_search_count(both->search));
}

jintArray result(JNIEnv* env, jobject, jlong handle, jobject, jlong session_handle, jint index,
                 jfloatArray score) {
  const Both both(env, handle, session_handle);
  if (!both) return nullptr;
  const int32_t* tokens = nullptr;
  size_t count = 0;
  float of_text = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env,
             oxb_beam_search_result(both->search, static_cast<size_t>(index), &tokens, &count,
                                    &of_text, &error),
             error)) {
    return nullptr;
  }
  const jintArray array = env->NewIntArray(static_cast<jsize>(count));
  if (array == nullptr || !write_array(env, array, count, tokens) ||
      !write_array(env, score, 1, &of_text)) {
    return nullptr;
  }
  return array;
}

}  // namespace

bool register_beam_search(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("create", "(Ldev/oxbow/Session;JIIIIDI)J", create),
      method("run", "(JLdev/oxbow/Session;J[I)I", run),
      method("result", "(JLdev/oxbow/Session;JI[F)[I", result),
  };
  return register_methods(env, "dev/oxbow/BeamSearch", methods);
}

}  // namespace oxbow::jni
