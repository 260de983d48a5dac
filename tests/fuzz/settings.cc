// tokenizer_config.json and what lies beside it, and generation_config.json: read or refused with an
// InputError.

#include "converter/text/tokenizer/settings.h"

#include "tests/fuzz/tokenizer_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow;
  testing::write_fuzz_folder({reinterpret_cast<const char*>(data), size});
  const std::string folder = testing::fuzz_folder().string();
  try {
    static_cast<void>(convert::read_tokenizer_settings(folder));
  } catch (const InputError&) {
  }
  schema::GenerationT generation;
  try {
    static_cast<void>(
        convert::read_generation_config(folder + "/generation_config.json", 100, generation));
  } catch (const InputError&) {
  }
  return 0;
}
