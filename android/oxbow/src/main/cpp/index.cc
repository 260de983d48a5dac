// The native methods of dev.oxbow.VectorIndex, which has no native object: every call brings its table.

#include <iterator>

#include "android/oxbow/src/main/cpp/objects.h"
#include "runtime/api/oxbow_index.h"

namespace oxbow::jni {
namespace {

jlong bytes(JNIEnv* env, jclass, jlong count, jint width, jint metric) {
  size_t needed = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (count < 0 || width < 0) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%lld vectors of %d numbers",
               static_cast<long long>(count), width);
    return 0;
  }
  check(env,
        oxb_index_bytes(static_cast<uint64_t>(count), static_cast<uint32_t>(width), metric, &needed,
                        &error),
        error);
  return static_cast<jlong>(needed);
}

void create(JNIEnv* env, jclass, jobject memory, jint position, jint length, jlong count,
            jint width, jint metric) {
  Bytes table;
  if (!direct_bytes(env, memory, position, length, Intent::kWrite, &table)) return;
  oxb_error error = OXB_ERROR_INIT;
  check(env,
        oxb_index_create(table.data, table.size, static_cast<uint64_t>(count),
                         static_cast<uint32_t>(width), metric, &error),
        error);
}

bool get_info(JNIEnv* env, const Bytes& table, oxb_index_info* info) {
  oxb_error error = OXB_ERROR_INIT;
  return check(env, oxb_index_get_info(table.data, table.size, info, &error), error);
}

/// In the order of the constants in VectorIndex.java.
void read_info(JNIEnv* env, jclass, jobject buffer, jint position, jint length,
               jlongArray numbers) {
  Bytes table;
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  if (!direct_bytes(env, buffer, position, length, Intent::kRead, &table) ||
      !get_info(env, table, &info)) {
    return;
  }
  const jlong all[] = {static_cast<jlong>(info.count), info.width, info.metric};
  write_array(env, numbers, std::size(all), all);
}

/// Whole vectors of the table's width. `count` is how many.
bool take_vectors(JNIEnv* env, const oxb_index_info& info, jfloatArray values, Memory* vectors,
                  size_t* count) {
  const jsize numbers = env->GetArrayLength(values);
  if (static_cast<uint32_t>(numbers) % info.width != 0) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%d numbers; vectors of the index have %u", numbers,
               info.width);
    return false;
  }
  *count = static_cast<size_t>(numbers) / info.width;
  return vectors->allocate(env, static_cast<size_t>(numbers), sizeof(float)) &&
         read_array(env, values, 0, numbers, vectors->as<float>());
}

void put(JNIEnv* env, jclass, jobject buffer, jint position, jint length, jlong first,
         jfloatArray values) {
  Bytes table;
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  Memory vectors;
  size_t count = 0;
  if (!direct_bytes(env, buffer, position, length, Intent::kWrite, &table) ||
      !get_info(env, table, &info) || !take_vectors(env, info, values, &vectors, &count)) {
    return;
  }
  oxb_error error = OXB_ERROR_INIT;
  check(env,
        oxb_index_put(table.data, table.size, static_cast<uint64_t>(first), vectors.as<float>(),
                      count, &error),
        error);
}

/// As many results as there is room for; ids of those there are not are -1.
void search(JNIEnv* env, jclass, jobject buffer, jint position, jint length, jfloatArray query,
            jlong first, jlong count, jlongArray ids, jfloatArray scores) {
  Bytes table;
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  Memory vectors, found, found_scores;
  size_t queries = 0;
  if (!direct_bytes(env, buffer, position, length, Intent::kRead, &table) ||
      !get_info(env, table, &info) || !take_vectors(env, info, query, &vectors, &queries)) {
    return;
  }
  const auto k = static_cast<size_t>(env->GetArrayLength(ids));
  if (queries != 1 || static_cast<size_t>(env->GetArrayLength(scores)) != k) {
    throw_java(env, OXB_INVALID_ARGUMENT, "%zu queries; a search is for one", queries);
    return;
  }
  oxb_error error = OXB_ERROR_INIT;
  if (!found.allocate(env, k, sizeof(uint64_t)) || !found_scores.allocate(env, k, sizeof(float)) ||
      !check(env,
             oxb_index_search(table.data, table.size, vectors.as<float>(), 1,
                              static_cast<uint64_t>(first), static_cast<uint64_t>(count),
                              static_cast<uint32_t>(k), found.as<uint64_t>(),
                              found_scores.as<float>(), &error),
             error) ||
      !write_array(env, scores, k, found_scores.as<float>())) {
    return;
  }
  write_array(env, ids, k, found.as<jlong>());
}

}  // namespace

bool register_index(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("bytes", "(JII)J", bytes),
      method("create", "(Ljava/nio/ByteBuffer;IIJII)V", create),
      method("readInfo", "(Ljava/nio/ByteBuffer;II[J)V", read_info),
      method("put", "(Ljava/nio/ByteBuffer;IIJ[F)V", put),
      method("search", "(Ljava/nio/ByteBuffer;II[FJJ[J[F)V", search),
  };
  return register_methods(env, "dev/oxbow/VectorIndex", methods);
}

}  // namespace oxbow::jni
