// The native methods of dev.oxbow.Tokenizer. A text is encoded and decoded in steps of bounded size; Java joins them.

#include <algorithm>

#include "android/oxbow/src/main/cpp/objects.h"

namespace oxbow::jni {
namespace {

constexpr size_t kTextBytes = 65536;
/// Tokens of one step; as many as Tokenizer.java has room for.
constexpr size_t kIds = 1024;

jlong create(JNIEnv* env, jobject, jlong model_handle, jint add_template, jboolean parse_special,
             jboolean skip_special, jint max_word_bytes) {
  const Use<Model> model(env, model_handle);
  if (!model) return 0;
  oxb_encoder_options encoding = OXB_ENCODER_OPTIONS_INIT;
  encoding.add_template = add_template;
  encoding.parse_special = parse_special;
  encoding.max_word_bytes = max_word_bytes < 0 ? 0 : static_cast<uint32_t>(max_word_bytes);
  oxb_decoder_options decoding = OXB_DECODER_OPTIONS_INIT;
  decoding.skip_special = skip_special;

  oxb_error error = OXB_ERROR_INIT;
  size_t encoder_bytes = 0, decoder_bytes = 0;
  if (!check(env, oxb_encoder_bytes(model->model, &encoding, &encoder_bytes, &error), error) ||
      !check(env, oxb_decoder_bytes(model->model, &decoding, &decoder_bytes, &error), error)) {
    return 0;
  }
  Draft<Tokenizer> tokenizer(env);
  if (!tokenizer) return 0;
  tokenizer->model.keep(model.get());
  if (!tokenizer->encoder_memory.allocate(env, encoder_bytes) ||
      !tokenizer->decoder_memory.allocate(env, decoder_bytes) ||
      !check(env,
             oxb_encoder_create(model->model, &encoding, tokenizer->encoder_memory.get(),
                                encoder_bytes, &tokenizer->encoder, &error),
             error) ||
      !check(env,
             oxb_decoder_create(model->model, &decoding, tokenizer->decoder_memory.get(),
                                decoder_bytes, &tokenizer->decoder, &error),
             error)) {
    return 0;
  }
  // An encoder takes something of three times the longest word.
  const size_t words = size_t{encoding.max_word_bytes} * 4;
  const size_t room =
      std::max({kTextBytes, words, oxb_decoder_most_text(tokenizer->decoder) * size_t{2}});
  if (!tokenizer->text.allocate(env, room) ||
      !tokenizer->ids.allocate(env, kIds, sizeof(int32_t))) {
    return 0;
  }
  return tokenizer.finish();
}

/// As Tokenizer.java takes it apart.
jlong step_result(bool over, size_t taken, size_t written) {
  const uint64_t bits = uint64_t{over} << 63 | uint64_t{taken} << 32 | written;
  return static_cast<jlong>(bits);
}

void restart(JNIEnv* env, jobject, jlong handle) {
  const Use<Tokenizer> tokenizer(env, handle);
  if (!tokenizer) return;
  (void)oxb_encoder_reset(tokenizer->encoder, nullptr);
  size_t ignored = 0;
  oxb_decoder_finish(tokenizer->decoder, tokenizer->text.as<char>(), tokenizer->text.size(),
                     &ignored, nullptr);
}

jlong encode(JNIEnv* env, jobject, jlong handle, jbyteArray text, jint offset, jint length,
             jintArray ids) {
  const Use<Tokenizer> tokenizer(env, handle);
  if (!tokenizer) return 0;
  if (length < 0) {
    throw_java(env, OXB_INVALID_ARGUMENT, "a text of %d bytes", length);
    return 0;
  }
  const size_t there = std::min(static_cast<size_t>(length), tokenizer->text.size());
  char* bytes = tokenizer->text.as<char>();
  if (!read_array(env, text, offset, static_cast<jint>(there), bytes)) return 0;
  const bool last = there == static_cast<size_t>(length);
  const size_t room = std::min(kIds, static_cast<size_t>(env->GetArrayLength(ids)));
  size_t count = 0, taken = 0;
  oxb_error error = OXB_ERROR_INIT;
  if (!check(env,
             oxb_encoder_run(tokenizer->encoder, bytes, there, last ? 1 : 0,
                             tokenizer->ids.as<int32_t>(), room, &count, &taken, &error),
             error)) {
    return 0;
  }
  const bool over = last && taken == there && count < room;
  if (count == 0 && taken == 0 && !over) {
    throw_java(env, OXB_TEXT_STOPPED, "a word of more than %zu bytes", there);
    return 0;
  }
  if (!write_array(env, ids, count, tokenizer->ids.as<int32_t>())) return 0;
  return step_result(over, taken, count);
}

jint text_bytes(JNIEnv* env, jobject, jlong handle) {
  const Use<Tokenizer> tokenizer(env, handle);
  return tokenizer ? static_cast<jint>(tokenizer->text.size()) : 0;
}

jlong decode(JNIEnv* env, jobject, jlong handle, jintArray ids, jint offset, jint count,
             jbyteArray text) {
  const Use<Tokenizer> tokenizer(env, handle);
  if (!tokenizer) return 0;
  const size_t there = std::min(kIds, static_cast<size_t>(count < 0 ? 0 : count));
  const auto* tokens = tokenizer->ids.as<int32_t>();
  if (!read_array(env, ids, offset, static_cast<jint>(there), tokenizer->ids.as<int32_t>())) {
    return 0;
  }
  const size_t most = oxb_decoder_most_text(tokenizer->decoder);
  const size_t room = tokenizer->text.size();
  char* bytes = tokenizer->text.as<char>();
  size_t taken = 0, written = 0, some = 0;
  oxb_error error = OXB_ERROR_INIT;
  for (; taken < there && room - written >= most; ++taken, written += some) {
    if (!check(env,
               oxb_decoder_run(tokenizer->decoder, tokens[taken], bytes + written, room - written,
                               &some, &error),
               error)) {
      return 0;
    }
  }
  const bool over = taken == static_cast<size_t>(count) && room - written >= most;
  if (over) {
    if (!check(
            env,
            oxb_decoder_finish(tokenizer->decoder, bytes + written, room - written, &some, &error),
            error)) {
      return 0;
    }
    written += some;
  }
  if (!write_array(env, text, written, bytes)) return 0;
  return step_result(over, taken, written);
}

}  // namespace

bool register_tokenizer(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      method("create", "(JIZZI)J", create),   method("restart", "(J)V", restart),
      method("encode", "(J[BII[I)J", encode), method("textBytes", "(J)I", text_bytes),
      method("decode", "(J[III[B)J", decode),
  };
  return register_methods(env, "dev/oxbow/Tokenizer", methods);
}

}  // namespace oxbow::jni
