// Any bytes as a chat template: rendered or refused with an InputError.

#include "converter/chat_template.h"

#include <cstddef>
#include <cstdint>

#include "converter/errors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::convert;
  try {
    render_chat(std::string(data, data + size), {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  } catch (const InputError&) {
  }
  return 0;
}
