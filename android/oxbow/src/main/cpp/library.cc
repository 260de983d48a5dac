// What the virtual machine calls when it loads and unloads the library, and the native methods that belong to no object.

#include <cstdint>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

jint version(JNIEnv*, jclass) { return static_cast<jint>(oxb_version()); }

jboolean is_built_in(JNIEnv*, jclass, jint backend) {
  return oxb_backend_is_built_in(static_cast<oxb_backend>(backend)) != 0 ? JNI_TRUE : JNI_FALSE;
}

jint living_objects(JNIEnv*, jclass) { return static_cast<jint>(Handles::living()); }

void release(JNIEnv* env, jclass, jlong handle) { Handles::close(env, handle); }

jlong native_bytes(JNIEnv*, jclass, jlong handle) {
  return static_cast<jlong>(Handles::bytes(handle));
}

jint bytes_to_alignment(JNIEnv* env, jclass, jobject buffer) {
  constexpr uintptr_t kAlignment = 64;
  const auto address = reinterpret_cast<uintptr_t>(env->GetDirectBufferAddress(buffer));
  return static_cast<jint>((kAlignment - address % kAlignment) % kAlignment);
}

}  // namespace

bool register_library(JNIEnv* env) {
  const JNINativeMethod library[] = {
      method("version", "()I", version),
      method("isBuiltIn", "(I)Z", is_built_in),
      method("livingObjects", "()I", living_objects),
  };
  const JNINativeMethod object[] = {method("release", "(J)V", release),
                                    method("nativeBytes", "(J)J", native_bytes)};
  const JNINativeMethod buffers[] = {
      method("bytesToAlignment", "(Ljava/nio/ByteBuffer;)I", bytes_to_alignment)};
  return register_methods(env, "dev/oxbow/Oxbow", library) &&
         register_methods(env, "dev/oxbow/NativeObject", object) &&
         register_methods(env, "dev/oxbow/DirectBuffers", buffers);
}

}  // namespace oxbow::jni

extern "C" {

JNIEXPORT jint JNI_OnLoad(JavaVM* machine, void*) {
  using namespace oxbow::jni;
  void* environment = nullptr;
  if (machine->GetEnv(&environment, JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  auto* env = static_cast<JNIEnv*>(environment);
  const bool ready = find_java(env) && register_library(env) && register_model(env) &&
                     register_session(env) && register_sampler(env) && register_tokenizer(env) &&
                     register_generator(env) && register_entries(env) &&
                     register_beam_search(env) && register_log_mel(env) && register_index(env) &&
                     register_npu(env) && find_log(env);
  return ready ? JNI_VERSION_1_6 : JNI_ERR;
}

JNIEXPORT void JNI_OnUnload(JavaVM* machine, void*) {
  void* environment = nullptr;
  if (machine->GetEnv(&environment, JNI_VERSION_1_6) != JNI_OK) return;
  auto* env = static_cast<JNIEnv*>(environment);
  oxbow::jni::forget_generator(env);
  oxbow::jni::forget_log(env);
  oxbow::jni::forget_java(env);
}

}  // extern "C"
