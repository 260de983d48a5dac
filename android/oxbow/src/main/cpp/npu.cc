// The native methods of dev.oxbow.Npu, and what a session tells of its accelerator.

#include <cstring>
#include <iterator>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

/// Keys and values of Java as the texts of the C interface.
class Settings {
 public:
  /// `words` are a key, its value, the next key and so on. False, with a Java exception, when there is no memory.
  bool read(JNIEnv* env, jobjectArray words) {
    const auto count = static_cast<size_t>(env->GetArrayLength(words));
    count_ = count / 2;
    if (!keys_.allocate(env, count_, sizeof(char*)) ||
        !values_.allocate(env, count_, sizeof(char*))) {
      return false;
    }
    size_t bytes = 0;
    for (const bool copies : {false, true}) {
      if (copies && !text_.allocate(env, bytes)) return false;
      bytes = 0;
      for (size_t i = 0; i < 2 * count_; ++i) {
        if (!add(env, words, i, copies, &bytes)) return false;
      }
    }
    return true;
  }
  const char* const* keys() const { return keys_.as<const char*>(); }
  const char* const* values() const { return values_.as<const char*>(); }
  size_t count() const { return count_; }

 private:
  bool add(JNIEnv* env, jobjectArray words, size_t index, bool copies, size_t* bytes) {
    const auto word =
        static_cast<jbyteArray>(env->GetObjectArrayElement(words, static_cast<jsize>(index)));
    if (word == nullptr) {
      throw_java(env, OXB_INVALID_ARGUMENT, "a setting is null");
      return false;
    }
    const jsize length = env->GetArrayLength(word);
    char* place = copies ? text_.as<char>() + *bytes : nullptr;
    const bool read = !copies || read_array(env, word, 0, length, place);
    env->DeleteLocalRef(word);
    if (!read) return false;
    if (copies) {
      place[length] = '\0';
      (index % 2 == 0 ? keys_ : values_).as<const char*>()[index / 2] = place;
    }
    *bytes += static_cast<size_t>(length) + 1;
    return true;
  }

  Memory keys_, values_, text_;
  size_t count_ = 0;
};

jlong open(JNIEnv* env, jobject, jbyteArray plugin, jobjectArray words, jobject log) {
  Draft<Npu> npu(env);
  Memory name;
  Settings settings;
  if (!npu || !take_text(env, plugin, &name) || !settings.read(env, words) ||
      !npu->log.keep(env, log)) {
    return 0;
  }
  oxb_npu_options options = OXB_NPU_OPTIONS_INIT;
  options.plugin = name.as<char>();
  options.keys = settings.keys();
  options.values = settings.values();
  options.key_count = settings.count();
  npu->log.listen(&options.log, &options.log_context);
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_npu_open(&options, &npu->npu, &error), error)) return 0;
  return npu.finish();
}

/// In the order of the constants in NpuReport.java; returns why it failed, or null when it has not.
jbyteArray report(JNIEnv* env, jobject, jlong handle, jlongArray numbers, jfloatArray difference) {
  const Use<Session> session(env, handle);
  oxb_npu_report report = OXB_NPU_REPORT_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!session || !check(env, oxb_session_npu_report(session->session, &report, &error), error)) {
    return nullptr;
  }
  const jlong all[] = {
      report.layers,
      static_cast<jlong>(report.device_bytes),
      static_cast<jlong>(report.fast_bytes),
      static_cast<jlong>(report.host_bytes),
      static_cast<jlong>(report.runs),
      static_cast<jlong>(report.rows),
      static_cast<jlong>(report.cpu_runs),
      static_cast<jlong>(report.nanoseconds),
      static_cast<jlong>(report.compared),
      static_cast<jlong>(report.different),
      report.largest_step,
  };
  if (!write_array(env, numbers, std::size(all), all) ||
      !write_array(env, difference, 1, &report.largest_difference) || report.failed == 0) {
    return nullptr;
  }
  return new_bytes(env, report.failure, std::strlen(report.failure));
}

}  // namespace

bool register_npu(JNIEnv* env) {
  const JNINativeMethod npu[] = {method("open", "([B[[BLdev/oxbow/LogSink;)J", open)};
  const JNINativeMethod session[] = {method("npuReport", "(J[J[F)[B", report)};
  return register_methods(env, "dev/oxbow/Npu", npu) &&
         register_methods(env, "dev/oxbow/Session", session);
}

}  // namespace oxbow::jni
