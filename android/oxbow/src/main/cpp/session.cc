// The native methods of dev.oxbow.Session.

#include <algorithm>
#include <cstring>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

/// Room for the tokens of a segment and for the logits of one.
bool allocate_room(JNIEnv* env, oxb_model* model, Session* session) {
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_model_get_info(model, &info, &error), error)) return false;
  session->max_segment = info.max_segment;
  session->output_width = info.output_width;
  for (size_t i = 0; i < info.entry_count; ++i) {
    oxb_entry_info entry = OXB_ENTRY_INFO_INIT;
    if (!check(env, oxb_model_entry_info(model, i, &entry, &error), error)) return false;
    session->most_tokens = std::max(session->most_tokens, entry.max_rows);
  }
  return session->tokens.allocate(env, session->most_tokens, sizeof(int32_t)) &&
         session->logits.allocate(env, session->output_width, sizeof(float));
}

jlong create(JNIEnv* env, jobject, jlong model_handle, jobject, jlongArray numbers,
             jbyteArray pipeline_cache, jobject arena, jint position, jint length) {
  const Use<Model> model(env, model_handle);
  if (!model) return 0;
  SessionOptions named(env, numbers);
  if (!named) return 0;
  oxb_session_options& options = named.get();
  const jsize cache_bytes = env->GetArrayLength(pipeline_cache);
  Memory cache;
  if (!cache.allocate(env, static_cast<size_t>(cache_bytes)) ||
      !read_array(env, pipeline_cache, 0, cache_bytes, cache.as<char>())) {
    return 0;
  }
  options.pipeline_cache = cache_bytes == 0 ? nullptr : cache.get();
  options.pipeline_cache_bytes = static_cast<size_t>(cache_bytes);
  oxb_error error = OXB_ERROR_INIT;
  oxb_plan plan = OXB_PLAN_INIT;
  if (!check(env, oxb_session_plan(model->model, &options, &plan, &error), error)) return 0;
  Draft<Session> session(env);
  if (!session || !allocate_room(env, model->model, session.get())) return 0;
  session->model.keep(model.get());
  session->use(named.lender(), named.npu());
  void* memory = nullptr;
  if (arena != nullptr) {
    if (!session->lent_arena.borrow(env, arena, position, length, Intent::kWrite)) return 0;
    memory = session->lent_arena.data();
    session->arena_bytes = session->lent_arena.size();
  } else {
    if (!session->own_arena.allocate(env, plan.arena_bytes)) return 0;
    memory = session->own_arena.get();
    session->arena_bytes = plan.arena_bytes;
  }
  if (!check(env,
             oxb_session_create(model->model, &plan, memory, session->arena_bytes,
                                &session->session, &error),
             error)) {
    return 0;
  }
  (void)oxb_session_backend_bytes(session->session, &session->backend_bytes, nullptr);
  return session.finish();
}

/// Part of a Java array as the session's tokens. There is room for them.
bool take_tokens(JNIEnv* env, Session* session, jintArray tokens, jint offset, jint count) {
  if (count < 0 || static_cast<uint32_t>(count) > session->most_tokens) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%d tokens; the model takes 1 to %u at once", count,
               session->most_tokens);
    return false;
  }
  return read_array(env, tokens, offset, count, session->tokens.as<int32_t>());
}

void feed(JNIEnv* env, jobject, jlong handle, jintArray tokens, jint offset, jint count) {
  const Use<Session> session(env, handle);
  if (!session) return;
  for (jint done = 0; done < count;) {
    if (session->closed()) return throw_java(env, kClosed, "the session was closed meanwhile");
    const auto step =
        static_cast<jint>(std::min(static_cast<uint32_t>(count - done), session->max_segment));
    if (!take_tokens(env, session.get(), tokens, offset + done, step)) return;
    done += step;
    oxb_error error = OXB_ERROR_INIT;
    if (!check(env,
               session->run(session->tokens.as<int32_t>(), static_cast<size_t>(step), done == count,
                            &error),
               error)) {
      return;
    }
  }
}

void feed_one(JNIEnv* env, jobject, jlong handle, jint token) {
  const Use<Session> session(env, handle);
  if (!session) return;
  oxb_error error = OXB_ERROR_INIT;
  check(env, session->run(&token, 1, true, &error), error);
}

bool need_logits(JNIEnv* env, const Session& session) {
  if (session.has_logits) return true;
  throw_java(env, OXB_INVALID_ARGUMENT, "there are no logits: feed a token first");
  return false;
}

jint sample(JNIEnv* env, jobject, jlong handle, jobject, jlong sampler_handle) {
  const Use<Session> session(env, handle);
  if (!session || !need_logits(env, *session.get())) return 0;
  const Use<Sampler> sampler(env, sampler_handle);
  if (!sampler) return 0;
  if (sampler->vocabulary != session->output_width) {
    throw_java(env, OXB_INVALID_ARGUMENT, "a sampler for %u logits; the model has %u",
               sampler->vocabulary, session->output_width);
    return 0;
  }
  int32_t token = 0;
  oxb_error error = OXB_ERROR_INIT;
  check(env,
        oxb_sampler_pick(sampler->sampler, session->logits.as<float>(), session->output_width,
                         &token, &error),
        error);
  return token;
}

void read_logits(JNIEnv* env, jobject, jlong handle, jobject buffer, jint position, jint length) {
  const Use<Session> session(env, handle);
  if (!session || !need_logits(env, *session.get())) return;
  float* floats = nullptr;
  if (!direct_floats(env, buffer, position, length, 1, session->output_width, Intent::kWrite,
                     &floats)) {
    return;
  }
  std::memcpy(floats, session->logits.get(), session->logits.size());
}

void run(JNIEnv* env, jobject, jlong handle, jintArray tokens, jint offset, jint count,
         jobject buffer, jint position, jint length, jint rows) {
  const Use<Session> session(env, handle);
  if (!session || !take_tokens(env, session.get(), tokens, offset, count)) return;
  float* floats = nullptr;
  if (buffer != nullptr && !direct_floats(env, buffer, position, length, static_cast<size_t>(rows),
                                          session->output_width, Intent::kWrite, &floats)) {
    return;
  }
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status = oxb_session_run(
      session->session, session->tokens.as<int32_t>(), static_cast<size_t>(count),
      static_cast<size_t>(rows), floats, static_cast<size_t>(rows) * session->output_width, &error);
  session->moved(status, false);
  check(env, status, error);
}

/// A token for each session, and the logits of all, unless there is no buffer for them.
void run_together(JNIEnv* env, jclass, jobjectArray, jlongArray handles, jintArray tokens,
                  jobject buffer, jint position, jint length) {
  const auto count = static_cast<size_t>(env->GetArrayLength(handles));
  if (count == 0 || count > OXB_MAX_SESSIONS_RUN) {
    return throw_java(env, OXB_INVALID_ARGUMENT, "%zu sessions; 1 to %d can be run together", count,
                      OXB_MAX_SESSIONS_RUN);
  }
  jlong all[OXB_MAX_SESSIONS_RUN];
  int32_t ids[OXB_MAX_SESSIONS_RUN];
  env->GetLongArrayRegion(handles, 0, static_cast<jsize>(count), all);
  if (!read_array(env, tokens, 0, static_cast<jsize>(count), ids)) return;
  const UseAll<Session, OXB_MAX_SESSIONS_RUN> sessions(env, all, count);
  if (!sessions) return;
  const size_t numbers = buffer == nullptr ? 0 : count * sessions[0].output_width;
  float* floats = nullptr;
  if (buffer != nullptr && !direct_floats(env, buffer, position, length, count,
                                          sessions[0].output_width, Intent::kWrite, &floats)) {
    return;
  }
  oxb_session* inner[OXB_MAX_SESSIONS_RUN];
  for (size_t i = 0; i < count; ++i) inner[i] = sessions[i].session;
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status = oxb_sessions_run(inner, count, ids, floats, numbers, &error);
  for (size_t i = 0; i < count; ++i) sessions[i].moved(status, false);
  check(env, status, error);
}

void copy(JNIEnv* env, jobject, jlong handle, jobject, jlong from) {
  const jlong both[] = {handle, from};
  const UseAll<Session, 2> sessions(env, both, 2);
  if (!sessions) return;
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status = oxb_session_copy(sessions[0].session, sessions[1].session, &error);
  sessions[0].moved(status, false);
  check(env, status, error);
}

void encode(JNIEnv* env, jobject, jlong handle, jintArray tokens, jint count) {
  const Use<Session> session(env, handle);
  if (!session || !take_tokens(env, session.get(), tokens, 0, count)) return;
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status = oxb_session_encode(session->session, session->tokens.as<int32_t>(),
                                               static_cast<size_t>(count), &error);
  session->moved(status, false);
  check(env, status, error);
}

void embed(JNIEnv* env, jobject, jlong handle, jintArray tokens, jint count, jint pooling,
           jboolean normalise, jfloatArray row) {
  const Use<Session> session(env, handle);
  if (!session || !take_tokens(env, session.get(), tokens, 0, count)) return;
  // Rows of all tokens: what is kept from call to call is one.
  Memory rows;
  const size_t numbers = std::max<size_t>(static_cast<size_t>(count), 1) * session->output_width;
  if (!rows.allocate(env, numbers, sizeof(float))) return;
  oxb_embed_options options = OXB_EMBED_OPTIONS_INIT;
  options.pooling = pooling;
  options.normalise = normalise == JNI_TRUE ? 1 : 0;
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status =
      oxb_session_embed(session->session, session->tokens.as<int32_t>(), static_cast<size_t>(count),
                        &options, rows.as<float>(), numbers, &error);
  session->moved(status, false);
  if (!check(env, status, error)) return;
  env->SetFloatArrayRegion(row, 0, static_cast<jsize>(session->output_width), rows.as<float>());
}

void cancel(JNIEnv* env, jobject, jlong handle) {
  Handles::reach(env, handle, Session::kKind, [](Object* object) {
    (void)oxb_session_cancel(static_cast<Session*>(object)->session);
  });
}

void reset(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  if (!session) return;
  (void)oxb_session_reset(session->session, nullptr);
  session->has_logits = false;
}

jlong position(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  uint64_t tokens = 0;
  if (session) (void)oxb_session_position(session->session, &tokens, nullptr);
  return static_cast<jlong>(tokens);
}

jlong arena_bytes(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  return session ? static_cast<jlong>(session->arena_bytes) : 0;
}

jlong backend_bytes(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  size_t bytes = 0;
  if (session) (void)oxb_session_backend_bytes(session->session, &bytes, nullptr);
  return static_cast<jlong>(bytes);
}

jbyteArray pipeline_cache(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  size_t count = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!session ||
      !check(env, oxb_session_pipeline_cache(session->session, nullptr, 0, &count, &error),
             error)) {
    return nullptr;
  }
  Memory cache;
  if (!cache.allocate(env, count)) return nullptr;
  if (count > 0 && !check(env,
                          oxb_session_pipeline_cache(session->session, cache.get(), cache.size(),
                                                     &count, &error),
                          error)) {
    return nullptr;
  }
  return new_bytes(env, cache.as<char>(), std::min(count, cache.size()));
}

jlong state_bytes(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  size_t bytes = 0;
  if (session) (void)oxb_session_state_bytes(session->session, &bytes, nullptr);
  return static_cast<jlong>(bytes);
}

/// `way` is one of the constants in Session.java.
void state(JNIEnv* env, jobject, jlong handle, jint way, jobject buffer, jint position,
           jint length) {
  const Use<Session> session(env, handle);
  if (!session) return;
  const bool writes = way == 0 || way == 2;
  Bytes bytes;
  if (!direct_bytes(env, buffer, position, length, writes ? Intent::kWrite : Intent::kRead,
                    &bytes)) {
    return;
  }
  oxb_session* inner = session->session;
  oxb_error error = OXB_ERROR_INIT;
  oxb_status status = OXB_OK;
  switch (way) {
    case 0:
      status = oxb_session_save(inner, bytes.data, bytes.size, &error);
      break;
    case 1:
      status = oxb_session_load(inner, bytes.data, bytes.size, &error);
      break;
    case 2:
      status = oxb_session_checkpoint(inner, bytes.data, bytes.size, &error);
      break;
    default:
      status = oxb_session_rewind(inner, bytes.data, bytes.size, &error);
      break;
  }
  if (check(env, status, error) && !writes) session->has_logits = false;
}

}  // namespace

oxb_status Session::run(const int32_t* ids, size_t count, bool keep_logits, oxb_error* error) {
  const oxb_status status = oxb_session_run(session, ids, count, keep_logits ? 1 : 0,
                                            logits.as<float>(), output_width, error);
  moved(status, keep_logits);
  return status;
}

void Session::moved(oxb_status status, bool kept_logits) {
  // What was refused has changed nothing.
  if (status == OXB_INVALID_ARGUMENT || status == OXB_BUFFER_TOO_SMALL ||
      status == OXB_STREAM_FULL) {
    return;
  }
  has_logits = status == OXB_OK && kept_logits;
}

bool register_session(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("create", "(JLdev/oxbow/SessionOptions;[J[BLjava/nio/ByteBuffer;II)J", create),
      method("feed", "(J[III)V", feed),
      method("feedOne", "(JI)V", feed_one),
      method("sample", "(JLdev/oxbow/Sampler;J)I", sample),
      method("readLogits", "(JLjava/nio/ByteBuffer;II)V", read_logits),
      method("run", "(J[IIILjava/nio/ByteBuffer;III)V", run),
      method("runTogether", "([Ldev/oxbow/Session;[J[ILjava/nio/ByteBuffer;II)V", run_together),
      method("copy", "(JLdev/oxbow/Session;J)V", copy),
      method("encode", "(J[II)V", encode),
      method("embed", "(J[IIIZ[F)V", embed),
      method("cancel", "(J)V", cancel),
      method("reset", "(J)V", reset),
      method("position", "(J)J", position),
      method("arenaBytes", "(J)J", arena_bytes),
      method("backendBytes", "(J)J", backend_bytes),
      method("pipelineCache", "(J)[B", pipeline_cache),
      method("stateBytes", "(J)J", state_bytes),
      method("state", "(JILjava/nio/ByteBuffer;II)V", state),
  };
  return register_methods(env, "dev/oxbow/Session", methods);
}

}  // namespace oxbow::jni
