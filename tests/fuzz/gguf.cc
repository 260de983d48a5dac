// Any bytes as a GGUF file: a model with all its values and its vocabulary, or refused with an InputError.

#include "converter/formats/gguf_model.h"
#include "converter/text/tokenizer/gguf_tokenizer.h"
#include "converter/text/tokenizer/gguf_vocabulary.h"
#include "host/errors.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::convert;
  try {
    const Gguf gguf("input", std::as_bytes(std::span(data, size)));
    oxbow::testing::read_all(gguf.tensors());
    try {
      const std::optional<GgufVocabulary> vocabulary = read_gguf_vocabulary(gguf);
      if (vocabulary) static_cast<void>(make_gguf_tokenizer("input", *vocabulary, 1024));
    } catch (const oxbow::InputError&) {
    }
    oxbow::testing::read_all(to_hugging_face(gguf).tensors);
  } catch (const oxbow::InputError&) {
  }
  return 0;
}
