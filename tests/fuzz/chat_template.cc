// Any bytes as a chat template: rendered to text in UTF-8 or refused with an InputError.

#include "converter/text/chat_template.h"

#include "host/errors.h"
#include "tests/fuzz/check_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::convert;
  try {
    const ChatTexts texts =
        render_chat(std::string(data, data + size), {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    if (!oxbow::testing::is_whole_text(texts.before) ||
        !oxbow::testing::is_whole_text(texts.after)) {
      oxbow::testing::broken("a template gives whole characters");
    }
  } catch (const oxbow::InputError&) {
  }
  return 0;
}
