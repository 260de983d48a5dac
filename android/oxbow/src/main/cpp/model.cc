// The native methods of dev.oxbow.Model.

#include <cstring>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

jlong open_file(JNIEnv* env, jclass, jbyteArray path) {
  const jsize length = env->GetArrayLength(path);
  Memory text;
  if (!text.allocate(env, static_cast<size_t>(length) + 1)) return 0;
  if (!read_array(env, path, 0, length, text.as<char>())) return 0;
  text.as<char>()[length] = '\0';
  Draft<Model> model(env);
  oxb_error error = OXB_ERROR_INIT;
  if (!model ||
      !check(env, oxb_model_open_file(text.as<char>(), nullptr, &model->model, &error), error)) {
    return 0;
  }
  return model.finish();
}

jlong open_descriptor(JNIEnv* env, jclass, jint fd, jlong offset, jlong length) {
  Draft<Model> model(env);
  oxb_error error = OXB_ERROR_INIT;
  if (!model ||
      !check(env,
             oxb_model_open_fd(fd, static_cast<uint64_t>(offset), static_cast<uint64_t>(length),
                               nullptr, &model->model, &error),
             error)) {
    return 0;
  }
  return model.finish();
}

jlong open_memory(JNIEnv* env, jclass, jobject bytes, jint position, jint length) {
  Draft<Model> model(env);
  if (!model || !model->bytes.borrow(env, bytes, position, length, Intent::kRead)) return 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env,
             oxb_model_open_memory(model->bytes.data(), model->bytes.size(), nullptr, &model->model,
                                   &error),
             error)) {
    return 0;
  }
  return model.finish();
}

/// In the order of the constants in Model.java.
void read_info(JNIEnv* env, jobject, jlong handle, jlongArray values) {
  const Use<Model> model(env, handle);
  if (!model) return;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  (void)oxb_model_get_info(model->model, &info, nullptr);
  const jlong all[] = {
      info.vocabulary,
      info.max_segment,
      static_cast<jlong>(info.file_bytes),
      static_cast<jlong>(info.weight_bytes),
      static_cast<jlong>(info.parameters),
      static_cast<jlong>(info.macs_per_token),
      static_cast<jlong>(info.hash),
      info.tokenizer,
      info.task,
      info.output_width,
      info.start_token,
      info.end_token,
      info.pad_token,
      info.mask_token,
      static_cast<jlong>(info.capacity),
      static_cast<jlong>(info.label_count),
  };
  env->SetLongArrayRegion(values, 0, sizeof(all) / sizeof(all[0]), all);
}

/// `which` is one of the constants in Model.java.
jbyteArray text(JNIEnv* env, jobject, jlong handle, jint which, jint index) {
  const Use<Model> model(env, handle);
  if (!model) return nullptr;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  (void)oxb_model_get_info(model->model, &info, nullptr);
  const char* found = nullptr;
  switch (which) {
    case 0:
      found = info.architecture;
      break;
    case 1:
      found = oxb_model_chat_before(model->model);
      break;
    case 2:
      found = oxb_model_chat_after(model->model);
      break;
    default:
      found = oxb_model_label(model->model, static_cast<size_t>(index));
      break;
  }
  return found == nullptr ? new_bytes(env, "", 0) : new_bytes(env, found, std::strlen(found));
}

jbyteArray metadata(JNIEnv* env, jobject, jlong handle, jbyteArray key) {
  const Use<Model> model(env, handle);
  if (!model) return nullptr;
  const jsize length = env->GetArrayLength(key);
  Memory name;
  if (!name.allocate(env, static_cast<size_t>(length) + 1)) return nullptr;
  if (!read_array(env, key, 0, length, name.as<char>())) return nullptr;
  name.as<char>()[length] = '\0';
  const char* found = oxb_model_find_metadata(model->model, name.as<char>());
  return found == nullptr ? nullptr : new_bytes(env, found, std::strlen(found));
}

jboolean ends_text(JNIEnv* env, jobject, jlong handle, jint token) {
  const Use<Model> model(env, handle);
  return model && oxb_model_ends_text(model->model, token) != 0 ? JNI_TRUE : JNI_FALSE;
}

jbyteArray token_bytes(JNIEnv* env, jobject, jlong handle, jint token) {
  const Use<Model> model(env, handle);
  if (!model) return nullptr;
  char some[256];
  size_t count = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_model_token_bytes(model->model, token, some, sizeof(some), &count, &error),
             error)) {
    return nullptr;
  }
  if (count <= sizeof(some)) return new_bytes(env, some, count);
  Memory all;
  if (!all.allocate(env, count) ||
      !check(env, oxb_model_token_bytes(model->model, token, all.as<char>(), count, &count, &error),
             error)) {
    return nullptr;
  }
  return new_bytes(env, all.as<char>(), count);
}

void check_weights(JNIEnv* env, jobject, jlong handle) {
  const Use<Model> model(env, handle);
  if (!model) return;
  oxb_error error = OXB_ERROR_INIT;
  check(env, oxb_model_check_weights(model->model, &error), error);
}

jlong arena_bytes(JNIEnv* env, jobject, jlong handle, jint threads, jint backend, jlong cpu_mask) {
  const Use<Model> model(env, handle);
  if (!model) return 0;
  const oxb_session_options options = session_options(threads, backend, cpu_mask);
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_error error = OXB_ERROR_INIT;
  check(env, oxb_session_plan(model->model, &options, &plan, &error), error);
  return static_cast<jlong>(plan.arena_bytes);
}

/// In the order in which Model.java reads them. A double holds all values of these types.
void advised_sampling(JNIEnv* env, jobject, jlong handle, jdoubleArray values) {
  const Use<Model> model(env, handle);
  if (!model) return;
  oxb_sampler_options options = OXB_SAMPLER_OPTIONS_INIT;
  (void)oxb_sampler_options_advised(model->model, &options, nullptr);
  const jdouble all[] = {static_cast<jdouble>(options.temperature),
                         static_cast<jdouble>(options.top_k), static_cast<jdouble>(options.top_p),
                         static_cast<jdouble>(options.repetition_penalty),
                         static_cast<jdouble>(options.repetition_window)};
  env->SetDoubleArrayRegion(values, 0, sizeof(all) / sizeof(all[0]), all);
}

}  // namespace

bool register_model(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("openFile", "([B)J", open_file),
      method("openDescriptor", "(IJJ)J", open_descriptor),
      method("openMemory", "(Ljava/nio/ByteBuffer;II)J", open_memory),
      method("readInfo", "(J[J)V", read_info),
      method("text", "(JII)[B", text),
      method("metadata", "(J[B)[B", metadata),
      method("endsText", "(JI)Z", ends_text),
      method("tokenBytes", "(JI)[B", token_bytes),
      method("checkWeights", "(J)V", check_weights),
      method("arenaBytes", "(JIIJ)J", arena_bytes),
      method("advisedSampling", "(J[D)V", advised_sampling),
  };
  return register_methods(env, "dev/oxbow/Model", methods);
}

}  // namespace oxbow::jni
