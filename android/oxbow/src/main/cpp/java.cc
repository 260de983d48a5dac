#include "android/oxbow/src/main/cpp/java.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "android/oxbow/src/main/cpp/handles.h"

namespace oxbow::jni {
namespace {

jclass exception_class = nullptr;
jmethodID exception_of = nullptr;

/// `op` is that of the step that failed; null: none did.
void throw_words(JNIEnv* env, int code, const char* text, size_t length, int32_t step,
                 const char* op) {
  // Bytes, as a path in the words may have characters that NewStringUTF does not take.
  const jbyteArray message = new_bytes(env, text, length);
  if (message == nullptr) return;
  const jbyteArray name = new_bytes(env, op == nullptr ? "" : op, op == nullptr ? 0 : strlen(op));
  if (name == nullptr) return;
  const jobject exception = env->CallStaticObjectMethod(
      exception_class, exception_of, static_cast<jint>(code), message, step, name);
  if (!env->ExceptionCheck()) {
    env->Throw(static_cast<jthrowable>(exception));
    env->DeleteLocalRef(exception);
  }
  env->DeleteLocalRef(name);
  env->DeleteLocalRef(message);
}

}  // namespace

void throw_java(JNIEnv* env, int code, const char* format, ...) {
  if (env->ExceptionCheck()) return;
  char text[sizeof(oxb_error) + 64];
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  size_t length = written < 0 ? 0 : static_cast<size_t>(written);
  if (length >= sizeof(text)) length = sizeof(text) - 1;
  throw_words(env, code, text, length, -1, nullptr);
}

bool check(JNIEnv* env, oxb_status status, const oxb_error& error) {
  if (status == OXB_OK) return true;
  if (env->ExceptionCheck()) return false;
  const char* text = error.text[0] != '\0' ? error.text : oxb_status_name(status);
  throw_words(env, status, text, std::strlen(text), error.step, error.op);
  return false;
}

bool read_array(JNIEnv* env, jintArray array, jint offset, jint count, int32_t* values) {
  env->GetIntArrayRegion(array, offset, count, values);
  return !env->ExceptionCheck();
}

bool read_array(JNIEnv* env, jbyteArray array, jint offset, jint count, char* values) {
  env->GetByteArrayRegion(array, offset, count, reinterpret_cast<jbyte*>(values));
  return !env->ExceptionCheck();
}

bool read_array(JNIEnv* env, jfloatArray array, jint offset, jint count, float* values) {
  env->GetFloatArrayRegion(array, offset, count, values);
  return !env->ExceptionCheck();
}

bool write_array(JNIEnv* env, jintArray array, size_t count, const int32_t* values) {
  env->SetIntArrayRegion(array, 0, static_cast<jsize>(count), values);
  return !env->ExceptionCheck();
}

bool write_array(JNIEnv* env, jbyteArray array, size_t count, const char* values) {
  env->SetByteArrayRegion(array, 0, static_cast<jsize>(count),
                          reinterpret_cast<const jbyte*>(values));
  return !env->ExceptionCheck();
}

bool write_array(JNIEnv* env, jfloatArray array, size_t count, const float* values) {
  env->SetFloatArrayRegion(array, 0, static_cast<jsize>(count), values);
  return !env->ExceptionCheck();
}

bool write_array(JNIEnv* env, jlongArray array, size_t count, const jlong* values) {
  env->SetLongArrayRegion(array, 0, static_cast<jsize>(count), values);
  return !env->ExceptionCheck();
}

bool write_array(JNIEnv* env, jdoubleArray array, size_t count, const jdouble* values) {
  env->SetDoubleArrayRegion(array, 0, static_cast<jsize>(count), values);
  return !env->ExceptionCheck();
}

jbyteArray new_bytes(JNIEnv* env, const char* bytes, size_t count) {
  if (count > INT32_MAX) {
    throw_java(env, OXB_INTERNAL, "a text of %zu bytes", count);
    return nullptr;
  }
  const jbyteArray array = env->NewByteArray(static_cast<jsize>(count));
  if (array != nullptr && !write_array(env, array, count, bytes)) return nullptr;
  return array;
}

bool direct_bytes(JNIEnv* env, jobject buffer, jint position, jint length, Intent intent,
                  Bytes* bytes) {
  // Java has checked this and says it better; this is what memory safety rests on.
  auto* begin = static_cast<std::byte*>(env->GetDirectBufferAddress(buffer));
  const jlong capacity = env->GetDirectBufferCapacity(buffer);
  if (begin == nullptr || position < 0 || length < 0 || jlong{position} + length > capacity) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%d bytes at %d are no part of a direct buffer", length,
               position);
    return false;
  }
  *bytes = {begin + position, static_cast<size_t>(length)};
  if (!Handles::may_use(bytes->data, bytes->size, intent == Intent::kWrite)) {
    throw_java(env, OXB_INVALID_ARGUMENT,
               "the buffer overlaps the arena of a session or the bytes of a model");
    return false;
  }
  return true;
}

bool direct_floats(JNIEnv* env, jobject buffer, jint position, jint length, size_t rows,
                   size_t width, Intent intent, float** floats) {
  size_t count = 0, needed = 0;
  if (!direct_floats(env, buffer, position, length, intent, floats, &count)) return false;
  if (__builtin_mul_overflow(rows, width, &needed) || needed > count) {
    throw_java(env, OXB_BUFFER_TOO_SMALL, "a buffer of %d bytes for %zu rows of %zu floats", length,
               rows, width);
    return false;
  }
  return true;
}

bool direct_floats(JNIEnv* env, jobject buffer, jint position, jint length, Intent intent,
                   float** floats, size_t* count) {
  Bytes bytes;
  if (!direct_bytes(env, buffer, position, length, intent, &bytes)) return false;
  if (reinterpret_cast<uintptr_t>(bytes.data) % alignof(float) != 0) {
    throw_java(env, OXB_INVALID_ARGUMENT,
               "the buffer's floats begin at an address that is no multiple of 4");
    return false;
  }
  *floats = reinterpret_cast<float*>(bytes.data);
  *count = bytes.size / sizeof(float);
  return true;
}

bool find_java(JNIEnv* env) {
  const jclass local = env->FindClass("dev/oxbow/OxbowException");
  if (local == nullptr) return false;
  exception_class = static_cast<jclass>(env->NewGlobalRef(local));
  env->DeleteLocalRef(local);
  if (exception_class == nullptr) return false;
  exception_of =
      env->GetStaticMethodID(exception_class, "of", "(I[BI[B)Ldev/oxbow/OxbowException;");
  return exception_of != nullptr;
}

void forget_java(JNIEnv* env) {
  env->DeleteGlobalRef(exception_class);
  exception_class = nullptr;
}

bool register_methods(JNIEnv* env, const char* class_name, const JNINativeMethod* methods,
                      size_t count) {
  const jclass owner = env->FindClass(class_name);
  if (owner == nullptr) return false;
  const bool done = env->RegisterNatives(owner, methods, static_cast<jint>(count)) == JNI_OK;
  env->DeleteLocalRef(owner);
  return done;
}

}  // namespace oxbow::jni
