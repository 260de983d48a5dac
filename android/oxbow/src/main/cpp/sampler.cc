// The native methods of dev.oxbow.Sampler.

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

jlong create(JNIEnv* env, jclass, jint vocabulary, jfloat temperature, jint top_k, jfloat top_p,
             jfloat penalty, jint window, jlong seed) {
  const oxb_sampler_options options =
      sampler_options(temperature, top_k, top_p, penalty, window, seed);
  Draft<Sampler> sampler(env);
  if (!sampler) return 0;
  sampler->vocabulary = static_cast<uint32_t>(vocabulary);
  size_t bytes = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env, oxb_sampler_bytes(sampler->vocabulary, &options, &bytes, &error), error) ||
      !sampler->memory.allocate(env, bytes) ||
      !check(env,
             oxb_sampler_create(sampler->vocabulary, &options, sampler->memory.get(), bytes,
                                &sampler->sampler, &error),
             error)) {
    return 0;
  }
  return sampler.finish();
}

void accept(JNIEnv* env, jobject, jlong handle, jint token) {
  const Use<Sampler> sampler(env, handle);
  if (sampler) (void)oxb_sampler_accept(sampler->sampler, token, nullptr);
}

jint pick(JNIEnv* env, jobject, jlong handle, jobject buffer, jint position, jint length) {
  const Use<Sampler> sampler(env, handle);
  float* logits = nullptr;
  if (!sampler || !direct_floats(env, buffer, position, length, 1, sampler->vocabulary,
                                 Intent::kRead, &logits)) {
    return 0;
  }
  int32_t token = 0;
  oxb_error error = OXB_ERROR_INIT;
  check(env, oxb_sampler_pick(sampler->sampler, logits, sampler->vocabulary, &token, &error),
        error);
  return token;
}

}  // namespace

bool register_sampler(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("create", "(IFIFFIJ)J", create),
      method("accept", "(JI)V", accept),
      method("pick", "(JLjava/nio/ByteBuffer;II)I", pick),
  };
  return register_methods(env, "dev/oxbow/Sampler", methods);
}

}  // namespace oxbow::jni
