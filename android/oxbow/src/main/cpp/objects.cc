#include "android/oxbow/src/main/cpp/objects.h"

#include <cstdlib>
#include <iterator>

namespace oxbow::jni {

Memory::~Memory() { std::free(data_); }

bool Memory::allocate(JNIEnv* env, size_t bytes) {
  // Nothing has an address too.
  data_ = std::malloc(bytes == 0 ? 1 : bytes);
  size_ = data_ == nullptr ? 0 : bytes;
  if (data_ == nullptr) throw_java(env, OXB_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
  return data_ != nullptr;
}

bool Memory::allocate(JNIEnv* env, size_t count, size_t bytes_of_one) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, bytes_of_one, &bytes)) {
    throw_java(env, OXB_OUT_OF_MEMORY, "no memory for %zu times %zu bytes", count, bytes_of_one);
    return false;
  }
  return allocate(env, bytes);
}

bool LentBuffer::borrow(JNIEnv* env, jobject buffer, jint position, jint length, Intent intent) {
  Bytes bytes;
  if (!direct_bytes(env, buffer, position, length, intent, &bytes)) return false;
  buffer_ = env->NewGlobalRef(buffer);
  if (buffer_ == nullptr) {
    throw_java(env, OXB_OUT_OF_MEMORY, "no memory for a reference to the buffer");
    return false;
  }
  claim_ = {bytes.data, bytes.size, intent == Intent::kWrite, nullptr};
  if (!Handles::add_claim(&claim_)) {
    // Between the first look and this one another thread was faster.
    claim_ = {};
    throw_java(env, OXB_INVALID_ARGUMENT,
               "the buffer overlaps the arena of a session or the bytes of a model");
    return false;
  }
  data_ = bytes.data;
  return true;
}

void LentBuffer::give_back(JNIEnv* env) {
  Handles::remove_claim(&claim_);
  if (buffer_ != nullptr) env->DeleteGlobalRef(buffer_);
  buffer_ = nullptr;
}

void Model::destroy(JNIEnv* env) {
  oxb_model_close(model);
  buffer.give_back(env);
  log.drop(env);
}

void Npu::destroy(JNIEnv* env) {
  oxb_npu_close(npu);
  log.drop(env);
}

void Session::destroy(JNIEnv* env) {
  oxb_session_destroy(session);
  lent_arena.give_back(env);
  lender.drop(env);
  npu.drop(env);
  model.drop(env);
}

void Tokenizer::destroy(JNIEnv* env) { model.drop(env); }

void Generator::destroy(JNIEnv* env) {
  oxb_generator_destroy(generator);
  model.drop(env);
}

void BeamSearch::destroy(JNIEnv* env) {
  oxb_beam_search_destroy(search);
  session.drop(env);
}

bool take_text(JNIEnv* env, jbyteArray bytes, Memory* text) {
  const jsize length = env->GetArrayLength(bytes);
  if (!text->allocate(env, static_cast<size_t>(length) + 1) ||
      !read_array(env, bytes, 0, length, text->as<char>())) {
    return false;
  }
  text->as<char>()[length] = '\0';
  return true;
}

SessionOptions::SessionOptions(JNIEnv* env, jlongArray numbers) {
  if (numbers == nullptr) {
    ready_ = true;
    return;
  }
  // In the order of the constants in SessionOptions.java.
  jlong all[8] = {};
  env->GetLongArrayRegion(numbers, 0, static_cast<jsize>(std::size(all)), all);
  if (env->ExceptionCheck() == JNI_TRUE) return;
  options_.threads = static_cast<uint32_t>(all[0]);
  options_.backend = static_cast<oxb_backend>(all[1]);
  options_.cpu_mask = static_cast<uint64_t>(all[2]);
  options_.warm_up = all[3] != 0;
  options_.npu_least_rows = static_cast<uint32_t>(all[4]);
  options_.npu_shadow = all[5] != 0;
  if (all[6] != 0) {
    if (!lender_.emplace(env, all[6])) return;
    options_.lender = lender()->session;
  }
  if (all[7] != 0) {
    if (!npu_.emplace(env, all[7])) return;
    options_.npu = npu()->npu;
  }
  ready_ = true;
}

oxb_sampler_options sampler_options(jfloat temperature, jint top_k, jfloat top_p, jfloat penalty,
                                    jint window, jlong seed) {
  oxb_sampler_options options = OXB_SAMPLER_OPTIONS_INIT;
  options.temperature = temperature;
  options.top_k = static_cast<uint32_t>(top_k);
  options.top_p = top_p;
  options.repetition_penalty = penalty;
  options.repetition_window = static_cast<uint32_t>(window);
  options.seed = static_cast<uint64_t>(seed);
  return options;
}

}  // namespace oxbow::jni
