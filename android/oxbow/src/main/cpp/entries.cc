// The native methods of dev.oxbow.Session about entry points, batches, tensors by name and drafts.

#include <algorithm>
#include <cstring>
#include <iterator>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

/// Inputs and outputs of one run at most, far above what a model has.
constexpr jsize kMostParts = 64;

/// An input or output of a run, as Java gives it.
struct Part {
  Memory name;
  jint position = 0, length = 0, rows = 0;
};

struct Parts {
  Part all[kMostParts];
  jsize count = 0;
};

/// The arrays of one length, taken apart. False, with a Java exception, when they are not.
bool take_parts(JNIEnv* env, jobjectArray names, jobjectArray buffers, jintArray positions,
                jintArray lengths, jintArray rows, Parts* parts) {
  parts->count = env->GetArrayLength(names);
  if (parts->count > kMostParts || env->GetArrayLength(buffers) != parts->count) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%d inputs and outputs; at most %d", parts->count,
               kMostParts);
    return false;
  }
  for (jsize i = 0; i < parts->count; ++i) {
    Part& part = parts->all[i];
    const auto name = static_cast<jbyteArray>(env->GetObjectArrayElement(names, i));
    if (name == nullptr || !take_text(env, name, &part.name)) return false;
    env->DeleteLocalRef(name);
    if (!read_array(env, positions, i, 1, &part.position) ||
        !read_array(env, lengths, i, 1, &part.length) || !read_array(env, rows, i, 1, &part.rows)) {
      return false;
    }
    if (part.rows < 0) {
      throw_java(env, OXB_INVALID_ARGUMENT, "%d rows of '%.60s'", part.rows, part.name.as<char>());
      return false;
    }
  }
  return true;
}

/// What the library reads of an input is in its buffer: it is told rows and no bytes.
bool take_input(JNIEnv* env, const oxb_model* model, size_t entry, const Part& part, jobject buffer,
                oxb_input* input) {
  oxb_error error = OXB_ERROR_INIT;
  oxb_input_info info = OXB_INPUT_INFO_INIT;
  size_t index = 0;
  const char* name = part.name.as<char>();
  if (!check(env, oxb_model_find_input(model, entry, name, &index, &error), error) ||
      !check(env, oxb_model_input_info(model, entry, index, &info, &error), error)) {
    return false;
  }
  // Floats and int32 are of one size.
  float* values = nullptr;
  if (!direct_floats(env, buffer, part.position, part.length, static_cast<size_t>(part.rows),
                     info.width, Intent::kRead, &values)) {
    return false;
  }
  *input = {sizeof(oxb_input), name, values, static_cast<size_t>(part.rows)};
  return true;
}

bool take_output(JNIEnv* env, const Part& part, jobject buffer, oxb_output* output) {
  float* values = nullptr;
  size_t capacity = 0;
  if (!direct_floats(env, buffer, part.position, part.length, Intent::kWrite, &values, &capacity)) {
    return false;
  }
  *output = {sizeof(oxb_output), part.name.as<char>(), values, capacity,
             static_cast<size_t>(part.rows)};
  return true;
}

/// The first `inputs` of the arrays are inputs, the others outputs, whose rows are written back.
void run_entry(JNIEnv* env, jobject, jlong handle, jint entry, jint inputs, jobjectArray names,
               jobjectArray buffers, jintArray positions, jintArray lengths, jintArray rows) {
  const Use<Session> session(env, handle);
  Parts parts;
  if (!session || !take_parts(env, names, buffers, positions, lengths, rows, &parts)) return;
  if (inputs < 0 || inputs > parts.count || entry < 0) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%d inputs of %d, entry point %d", inputs, parts.count,
               entry);
    return;
  }
  oxb_input given[kMostParts];
  oxb_output wanted[kMostParts];
  const auto index = static_cast<size_t>(entry);
  for (jsize i = 0; i < parts.count; ++i) {
    const jobject buffer = env->GetObjectArrayElement(buffers, i);
    const bool taken = buffer != nullptr &&
                       (i < inputs ? take_input(env, session->model.get()->model, index,
                                                parts.all[i], buffer, &given[i])
                                   : take_output(env, parts.all[i], buffer, &wanted[i - inputs]));
    env->DeleteLocalRef(buffer);
    if (!taken) return;
  }
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status =
      oxb_session_run_entry(session->session, index, given, static_cast<size_t>(inputs), wanted,
                            static_cast<size_t>(parts.count - inputs), &error);
  session->moved(status, false);
  if (!check(env, status, error)) return;
  for (jsize i = inputs; i < parts.count; ++i) {
    const auto written = static_cast<jint>(wanted[i - inputs].rows);
    env->SetIntArrayRegion(rows, i, 1, &written);
  }
}

void run_batch(JNIEnv* env, jobject, jlong handle, jintArray tokens, jintArray lengths,
               jobject buffer, jint position, jint length) {
  const Use<Session> session(env, handle);
  if (!session) return;
  const jsize count = env->GetArrayLength(tokens), texts = env->GetArrayLength(lengths);
  Memory ids, sizes, counts;
  float* output = nullptr;
  size_t capacity = 0;
  if (!ids.allocate(env, static_cast<size_t>(count), sizeof(int32_t)) ||
      !sizes.allocate(env, static_cast<size_t>(texts), sizeof(int32_t)) ||
      !counts.allocate(env, static_cast<size_t>(texts), sizeof(size_t)) ||
      !read_array(env, tokens, 0, count, ids.as<int32_t>()) ||
      !read_array(env, lengths, 0, texts, sizes.as<int32_t>()) ||
      !direct_floats(env, buffer, position, length, Intent::kWrite, &output, &capacity)) {
    return;
  }
  int64_t left = count;
  for (jsize i = 0; i < texts; ++i) {
    const int32_t of_text = sizes.as<int32_t>()[i];
    left -= of_text;
    if (of_text < 0 || left < 0) {
      throw_java(env, OXB_INVALID_ARGUMENT, "the texts have more tokens than there are");
      return;
    }
    counts.as<size_t>()[i] = static_cast<size_t>(of_text);
  }
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status =
      oxb_session_run_batch(session->session, ids.as<int32_t>(), counts.as<size_t>(),
                            static_cast<size_t>(texts), output, capacity, &error);
  session->moved(status, false);
  check(env, status, error);
}

jint tensor_count(JNIEnv* env, jobject, jlong handle) {
  const Use<Session> session(env, handle);
  size_t count = 0;
  if (session) (void)oxb_session_tensor_count(session->session, &count, nullptr);
  return static_cast<jint>(count);
}

jint find_tensor(JNIEnv* env, jobject, jlong handle, jbyteArray name) {
  const Use<Session> session(env, handle);
  Memory text;
  size_t index = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!session || !take_text(env, name, &text)) return 0;
  check(env, oxb_session_find_tensor(session->session, text.as<char>(), &index, &error), error);
  return static_cast<jint>(index);
}

/// In the order of the constants in TensorInfo.java; returns the name.
jbyteArray tensor_info(JNIEnv* env, jobject, jlong handle, jint index, jlongArray numbers) {
  const Use<Session> session(env, handle);
  oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  if (!session ||
      !check(env,
             oxb_session_tensor_info(session->session, static_cast<size_t>(index), &info, &error),
             error)) {
    return nullptr;
  }
  const jlong all[] = {info.rows, info.max_rows, info.width};
  if (!write_array(env, numbers, std::size(all), all)) return nullptr;
  return new_bytes(env, info.name, std::strlen(info.name));
}

void read_tensor(JNIEnv* env, jobject, jlong handle, jint index, jobject buffer, jint position,
                 jint length) {
  const Use<Session> session(env, handle);
  oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  float* values = nullptr;
  if (!session ||
      !check(env,
             oxb_session_tensor_info(session->session, static_cast<size_t>(index), &info, &error),
             error) ||
      !direct_floats(env, buffer, position, length, info.rows, info.width, Intent::kWrite,
                     &values)) {
    return;
  }
  check(env,
        oxb_session_tensor_read(session->session, static_cast<size_t>(index), values,
                                size_t{info.rows} * info.width, &error),
        error);
}

/// Null: there is no such step.
jbyteArray step_provider(JNIEnv* env, jobject, jlong handle, jint step) {
  const Use<Session> session(env, handle);
  if (!session) return nullptr;
  const char* name = oxb_session_step_provider(session->session, static_cast<size_t>(step));
  return name == nullptr ? nullptr : new_bytes(env, name, std::strlen(name));
}

bool measure_draft(JNIEnv* env, const Session& session, jint tokens, size_t* bytes) {
  if (tokens < 0) {
    throw_java(env, OXB_INVALID_ARGUMENT, "a draft of %d tokens", tokens);
    return false;
  }
  oxb_error error = OXB_ERROR_INIT;
  return check(env,
               oxb_session_draft_bytes(session.session, static_cast<size_t>(tokens), bytes, &error),
               error);
}

jlong draft_bytes(JNIEnv* env, jobject, jlong handle, jint tokens) {
  const Use<Session> session(env, handle);
  size_t bytes = 0;
  if (session) measure_draft(env, *session.get(), tokens, &bytes);
  return static_cast<jlong>(bytes);
}

void draft(JNIEnv* env, jobject, jlong handle, jint tokens) {
  const Use<Session> session(env, handle);
  size_t bytes = 0;
  Memory memory;
  oxb_error error = OXB_ERROR_INIT;
  if (!session || !measure_draft(env, *session.get(), tokens, &bytes) ||
      !memory.allocate(env, bytes) ||
      !check(env,
             oxb_session_draft(session->session, memory.get(), bytes, static_cast<size_t>(tokens),
                               &error),
             error)) {
    return;
  }
  // Only now nobody uses that of an earlier draft.
  session->draft.swap(memory);
}

void keep(JNIEnv* env, jobject, jlong handle, jint tokens) {
  const Use<Session> session(env, handle);
  if (!session) return;
  if (tokens < 0) return throw_java(env, OXB_INVALID_ARGUMENT, "%d tokens to keep", tokens);
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status = oxb_session_keep(session->session, static_cast<size_t>(tokens), &error);
  session->moved(status, false);
  check(env, status, error);
}

}  // namespace

bool register_entries(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("runEntry", "(JII[[B[Ljava/nio/ByteBuffer;[I[I[I)V", run_entry),
      method("runBatch", "(J[I[ILjava/nio/ByteBuffer;II)V", run_batch),
      method("tensorCount", "(J)I", tensor_count),
      method("findTensor", "(J[B)I", find_tensor),
      method("tensorInfo", "(JI[J)[B", tensor_info),
      method("readTensor", "(JILjava/nio/ByteBuffer;II)V", read_tensor),
      method("stepProvider", "(JI)[B", step_provider),
      method("draftBytes", "(JI)J", draft_bytes),
      method("draft", "(JI)V", draft),
      method("keep", "(JI)V", keep),
  };
  return register_methods(env, "dev/oxbow/Session", methods);
}

}  // namespace oxbow::jni
