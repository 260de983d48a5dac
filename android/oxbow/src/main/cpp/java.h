#pragma once

// The way back to Java: exceptions, arrays and direct buffers.

#include <jni.h>

#include <cstddef>
#include <cstdint>

#include "runtime/api/oxbow.h"

namespace oxbow::jni {

/// Codes of OxbowException beside those of oxb_status.
inline constexpr int kClosed = 100;
inline constexpr int kBusy = 101;

/// Throws OxbowException, unless an exception is pending already. Every error that leaves this library goes through
/// here or through check().
[[gnu::format(printf, 3, 4)]] void throw_java(JNIEnv* env, int code, const char* format, ...);
/// The same for a status of the library. True: there was nothing to throw.
bool check(JNIEnv* env, oxb_status status, const oxb_error& error);

/// `count` values from `offset` on. False, with a Java exception, when the array has no such part.
bool read_array(JNIEnv* env, jintArray array, jint offset, jint count, int32_t* values);
bool read_array(JNIEnv* env, jbyteArray array, jint offset, jint count, char* values);
bool read_array(JNIEnv* env, jfloatArray array, jint offset, jint count, float* values);
/// To the array's beginning.
bool write_array(JNIEnv* env, jintArray array, size_t count, const int32_t* values);
bool write_array(JNIEnv* env, jbyteArray array, size_t count, const char* values);
bool write_array(JNIEnv* env, jfloatArray array, size_t count, const float* values);
bool write_array(JNIEnv* env, jlongArray array, size_t count, const jlong* values);
bool write_array(JNIEnv* env, jdoubleArray array, size_t count, const jdouble* values);
/// Null, with a Java exception, when there is no memory.
jbyteArray new_bytes(JNIEnv* env, const char* bytes, size_t count);

/// Part of a direct buffer.
struct Bytes {
  std::byte* data = nullptr;
  size_t size = 0;
};

enum class Intent { kRead, kWrite };

/// False, with a Java exception, when the buffer is not direct, has no such part, or the part belongs to a session.
bool direct_bytes(JNIEnv* env, jobject buffer, jint position, jint length, Intent intent,
                  Bytes* bytes);
/// The same for `rows` times `width` floats.
bool direct_floats(JNIEnv* env, jobject buffer, jint position, jint length, size_t rows,
                   size_t width, Intent intent, float** floats);
/// The same for as many floats as there are.
bool direct_floats(JNIEnv* env, jobject buffer, jint position, jint length, Intent intent,
                   float** floats, size_t* count);

/// Finds what the functions above need. False, with a Java exception, when the classes are not those of this version.
bool find_java(JNIEnv* env);
void forget_java(JNIEnv* env);

/// Connects native methods with their class.
bool register_methods(JNIEnv* env, const char* class_name, const JNINativeMethod* methods,
                      size_t count);
template <size_t kCount>
bool register_methods(JNIEnv* env, const char* class_name,
                      const JNINativeMethod (&methods)[kCount]) {
  return register_methods(env, class_name, methods, kCount);
}

/// A row of such a table. The fields are not const in every jni.h.
template <typename Function>
JNINativeMethod method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace oxbow::jni
