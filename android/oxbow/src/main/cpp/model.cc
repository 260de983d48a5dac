// The native methods of dev.oxbow.Model.

#include <cstring>
#include <iterator>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

/// What Java's OpenOptions say, and who hears of it.
bool read_open_options(JNIEnv* env, Model* model, jint access, jboolean prefetch,
                       jboolean check_weights, jobject memory, jint position, jint length,
                       jobject log, SessionOptions& session, oxb_open_options* options) {
  options->session = &session.get();
  options->access = access;
  options->prefetch = prefetch == JNI_TRUE;
  options->check_weights = check_weights == JNI_TRUE;
  if (memory != nullptr) {
    if (!model->buffer.borrow(env, memory, position, length, Intent::kWrite)) return false;
    options->memory = model->buffer.data();
    options->memory_bytes = model->buffer.size();
  }
  if (!model->log.keep(env, log)) return false;
  model->log.listen(&options->log, &options->log_context);
  return true;
}

jlong finish_open(Draft<Model>& model, const oxb_open_options& options) {
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  (void)oxb_model_get_info(model->model, &info, nullptr);
  if (options.access == OXB_ACCESS_READ && options.memory == nullptr) {
    model->read_bytes = static_cast<size_t>(info.file_bytes);
  }
  return model.finish();
}

jlong open_file(JNIEnv* env, jclass, jbyteArray path, jint access, jboolean prefetch,
                jboolean check_weights, jobject memory, jint position, jint length, jobject log,
                jobject, jlongArray numbers) {
  Memory text;
  SessionOptions session(env, numbers);
  Draft<Model> model(env);
  oxb_open_options options = OXB_OPEN_OPTIONS_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!session || !model || !take_text(env, path, &text) ||
      !read_open_options(env, model.get(), access, prefetch, check_weights, memory, position,
                         length, log, session, &options) ||
      !check(env, oxb_model_open_file(text.as<char>(), &options, &model->model, &error), error)) {
    return 0;
  }
  return finish_open(model, options);
}

jlong open_descriptor(JNIEnv* env, jclass, jint fd, jlong offset, jlong bytes, jint access,
                      jboolean prefetch, jboolean check_weights, jobject memory, jint position,
                      jint length, jobject log, jobject, jlongArray numbers) {
  SessionOptions session(env, numbers);
  Draft<Model> model(env);
  oxb_open_options options = OXB_OPEN_OPTIONS_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!session || !model ||
      !read_open_options(env, model.get(), access, prefetch, check_weights, memory, position,
                         length, log, session, &options) ||
      !check(env,
             oxb_model_open_fd(fd, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes),
                               &options, &model->model, &error),
             error)) {
    return 0;
  }
  return finish_open(model, options);
}

jlong open_memory(JNIEnv* env, jclass, jobject bytes, jint position, jint length,
                  jboolean check_weights, jobject log, jobject, jlongArray numbers) {
  SessionOptions session(env, numbers);
  Draft<Model> model(env);
  oxb_open_options options = OXB_OPEN_OPTIONS_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!session || !model || !model->buffer.borrow(env, bytes, position, length, Intent::kRead) ||
      !read_open_options(env, model.get(), OXB_ACCESS_MAP, JNI_FALSE, check_weights, nullptr, 0, 0,
                         log, session, &options) ||
      !check(env,
             oxb_model_open_memory(model->buffer.data(), model->buffer.size(), &options,
                                   &model->model, &error),
             error)) {
    return 0;
  }
  return finish_open(model, options);
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
      static_cast<jlong>(info.entry_count),
      static_cast<jlong>(info.metadata_count),
  };
  write_array(env, values, std::size(all), all);
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
    case 3:
      found = oxb_model_label(model->model, static_cast<size_t>(index));
      break;
    default: {
      const char* key = nullptr;
      const char* value = nullptr;
      (void)oxb_model_metadata(model->model, static_cast<size_t>(index), &key, &value, nullptr);
      found = which == 4 ? key : value;
      break;
    }
  }
  return found == nullptr ? new_bytes(env, "", 0) : new_bytes(env, found, std::strlen(found));
}

jbyteArray metadata(JNIEnv* env, jobject, jlong handle, jbyteArray key) {
  const Use<Model> model(env, handle);
  if (!model) return nullptr;
  Memory name;
  if (!take_text(env, key, &name)) return nullptr;
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

/// In the order of the constants in SessionPlan.java.
void plan(JNIEnv* env, jobject, jlong handle, jobject, jlongArray numbers, jlongArray bytes) {
  const Use<Model> model(env, handle);
  if (!model) return;
  SessionOptions options(env, numbers);
  if (!options) return;
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_session_plan(model->model, &options.get(), &plan, &error), error)) return;
  const jlong all[] = {
      static_cast<jlong>(plan.arena_bytes),   static_cast<jlong>(plan.session_bytes),
      static_cast<jlong>(plan.state_bytes),   static_cast<jlong>(plan.activation_bytes),
      static_cast<jlong>(plan.scratch_bytes), static_cast<jlong>(plan.device_bytes),
      static_cast<jlong>(plan.library_bytes), static_cast<jlong>(plan.checkpoint_bytes),
      static_cast<jlong>(plan.beam_bytes),
  };
  write_array(env, bytes, std::size(all), all);
}

/// The three below give a name, and numbers in the order of the constants in their Java class.
jbyteArray entry_info(JNIEnv* env, jobject, jlong handle, jint entry, jlongArray numbers) {
  const Use<Model> model(env, handle);
  oxb_entry_info info = OXB_ENTRY_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!model ||
      !check(env, oxb_model_entry_info(model->model, static_cast<size_t>(entry), &info, &error),
             error)) {
    return nullptr;
  }
  const jlong all[] = {info.output_rows,
                       info.max_rows,
                       static_cast<jlong>(info.input_count),
                       static_cast<jlong>(info.output_count),
                       info.starts,
                       info.any_pieces};
  if (!write_array(env, numbers, std::size(all), all)) return nullptr;
  return new_bytes(env, info.name, std::strlen(info.name));
}

jbyteArray input_info(JNIEnv* env, jobject, jlong handle, jint entry, jint input,
                      jlongArray numbers) {
  const Use<Model> model(env, handle);
  oxb_input_info info = OXB_INPUT_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!model || !check(env,
                       oxb_model_input_info(model->model, static_cast<size_t>(entry),
                                            static_cast<size_t>(input), &info, &error),
                       error)) {
    return nullptr;
  }
  const jlong all[] = {info.type,     info.width,    info.limit,   info.default_value,
                       info.required, info.max_rows, info.own_rows};
  if (!write_array(env, numbers, std::size(all), all)) return nullptr;
  return new_bytes(env, info.name, std::strlen(info.name));
}

jbyteArray output_info(JNIEnv* env, jobject, jlong handle, jint entry, jint output,
                       jlongArray numbers) {
  const Use<Model> model(env, handle);
  oxb_output_info info = OXB_OUTPUT_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!model || !check(env,
                       oxb_model_output_info(model->model, static_cast<size_t>(entry),
                                             static_cast<size_t>(output), &info, &error),
                       error)) {
    return nullptr;
  }
  const jlong all[] = {info.width, info.max_rows};
  if (!write_array(env, numbers, std::size(all), all)) return nullptr;
  return new_bytes(env, info.name, std::strlen(info.name));
}

void advised_beams(JNIEnv* env, jobject, jlong handle, jdoubleArray values) {
  const Use<Model> model(env, handle);
  if (!model) return;
  oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
  (void)oxb_beam_options_advised(model->model, &options, nullptr);
  const jdouble all[] = {static_cast<jdouble>(options.beams), options.length_penalty,
                         static_cast<jdouble>(options.stop)};
  write_array(env, values, std::size(all), all);
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
  write_array(env, values, std::size(all), all);
}

}  // namespace

bool register_model(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("openFile",
             "([BIZZLjava/nio/ByteBuffer;IILdev/oxbow/LogSink;Ldev/oxbow/SessionOptions;[J)J",
             open_file),
      method("openDescriptor",
             "(IJJIZZLjava/nio/ByteBuffer;IILdev/oxbow/LogSink;Ldev/oxbow/SessionOptions;[J)J",
             open_descriptor),
      method("openMemory",
             "(Ljava/nio/ByteBuffer;IIZLdev/oxbow/LogSink;Ldev/oxbow/SessionOptions;[J)J",
             open_memory),
      method("readInfo", "(J[J)V", read_info),
      method("text", "(JII)[B", text),
      method("metadata", "(J[B)[B", metadata),
      method("endsText", "(JI)Z", ends_text),
      method("tokenBytes", "(JI)[B", token_bytes),
      method("checkWeights", "(J)V", check_weights),
      method("plan", "(JLdev/oxbow/SessionOptions;[J[J)V", plan),
      method("entryInfo", "(JI[J)[B", entry_info),
      method("inputInfo", "(JII[J)[B", input_info),
      method("outputInfo", "(JII[J)[B", output_info),
      method("advisedBeams", "(J[D)V", advised_beams),
      method("advisedSampling", "(J[D)V", advised_sampling),
  };
  return register_methods(env, "dev/oxbow/Model", methods);
}

}  // namespace oxbow::jni
