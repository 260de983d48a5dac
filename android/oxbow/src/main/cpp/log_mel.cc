// The native methods of dev.oxbow.LogMel.

#include <algorithm>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

jlong create(JNIEnv* env, jclass, jint bins, jint frames) {
  Draft<LogMel> mel(env);
  size_t bytes = 0;
  oxb_error error = OXB_ERROR_INIT;
  const auto rows = static_cast<uint32_t>(bins), columns = static_cast<uint32_t>(frames);
  if (!mel || !check(env, oxb_log_mel_bytes(rows, columns, &bytes, &error), error) ||
      !mel->memory.allocate(env, bytes) ||
      !check(env, oxb_log_mel_create(rows, columns, mel->memory.get(), bytes, &mel->mel, &error),
             error)) {
    return 0;
  }
  return mel.finish();
}

jint push(JNIEnv* env, jobject, jlong handle, jfloatArray samples, jint offset, jint count) {
  const Use<LogMel> mel(env, handle);
  if (!mel) return 0;
  float some[1024];
  jint done = 0;
  oxb_error error = OXB_ERROR_INIT;
  while (done < count) {
    const jint now = std::min(count - done, static_cast<jint>(std::size(some)));
    size_t taken = 0;
    if (!read_array(env, samples, offset + done, now, some) ||
        !check(env, oxb_log_mel_push(mel->mel, some, static_cast<size_t>(now), &taken, &error),
               error)) {
      return 0;
    }
    done += static_cast<jint>(taken);
    if (taken < static_cast<size_t>(now)) break;
  }
  return done;
}

void finish(JNIEnv* env, jobject, jlong handle, jobject buffer, jint position, jint length) {
  const Use<LogMel> mel(env, handle);
  float* features = nullptr;
  size_t capacity = 0;
  if (!mel || !direct_floats(env, buffer, position, length, Intent::kWrite, &features, &capacity)) {
    return;
  }
  oxb_error error = OXB_ERROR_INIT;
  check(env, oxb_log_mel_finish(mel->mel, features, capacity, &error), error);
}

void reset(JNIEnv* env, jobject, jlong handle) {
  const Use<LogMel> mel(env, handle);
  if (mel) (void)oxb_log_mel_reset(mel->mel, nullptr);
}

}  // namespace

bool register_log_mel(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("createNative", "(II)J", create),
      method("push", "(J[FII)I", push),
      method("finish", "(JLjava/nio/ByteBuffer;II)V", finish),
      method("reset", "(J)V", reset),
  };
  return register_methods(env, "dev/oxbow/LogMel", methods);
}

}  // namespace oxbow::jni
