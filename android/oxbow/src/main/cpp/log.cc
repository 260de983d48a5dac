// Lines of a model's log on their way to dev.oxbow.LogSink.

#include <cstring>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

JavaVM* machine = nullptr;
jclass sink_class = nullptr;
jmethodID on_line = nullptr;

/// An exception that waits while other Java code is called.
class Aside {
 public:
  explicit Aside(JNIEnv* env) : env_(env), exception_(env->ExceptionOccurred()) {
    if (exception_ != nullptr) env->ExceptionClear();
  }
  ~Aside() {
    if (exception_ == nullptr) return;
    env_->Throw(exception_);
    env_->DeleteLocalRef(exception_);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  JNIEnv* env_;
  jthrowable exception_;
};

}  // namespace

bool LogReference::keep(JNIEnv* env, jobject sink) {
  if (sink == nullptr) return true;
  sink_ = env->NewGlobalRef(sink);
  if (sink_ == nullptr) throw_java(env, OXB_OUT_OF_MEMORY, "no memory for a reference to the log");
  return sink_ != nullptr;
}

void LogReference::drop(JNIEnv* env) {
  if (sink_ != nullptr) env->DeleteGlobalRef(sink_);
  sink_ = nullptr;
}

void LogReference::listen(oxb_log_callback* log, void** context) {
  if (sink_ == nullptr) return;
  *log = write;
  *context = this;
}

void LogReference::write(void* self, oxb_log_level level, const char* text) {
  void* environment = nullptr;
  if (machine->GetEnv(&environment, JNI_VERSION_1_6) != JNI_OK) return;
  auto* env = static_cast<JNIEnv*>(environment);
  const Aside aside(env);
  const jbyteArray line = new_bytes(env, text, std::strlen(text));
  if (line != nullptr) {
    env->CallVoidMethod(static_cast<LogReference*>(self)->sink_, on_line, static_cast<jint>(level),
                        line);
    env->DeleteLocalRef(line);
  }
  // What a listener throws would end a call that it is only told of.
  env->ExceptionClear();
}

bool find_log(JNIEnv* env) {
  if (env->GetJavaVM(&machine) != JNI_OK) return false;
  const jclass local = env->FindClass("dev/oxbow/LogSink");
  if (local == nullptr) return false;
  sink_class = static_cast<jclass>(env->NewGlobalRef(local));
  env->DeleteLocalRef(local);
  if (sink_class == nullptr) return false;
  on_line = env->GetMethodID(sink_class, "onLine", "(I[B)V");
  return on_line != nullptr;
}

void forget_log(JNIEnv* env) {
  env->DeleteGlobalRef(sink_class);
  sink_class = nullptr;
}

}  // namespace oxbow::jni
