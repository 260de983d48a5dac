// SentencePiece models and their settings: see tokenizer_folder.h.

#include "tests/fuzz/tokenizer_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  oxbow::testing::write_fuzz_folder({reinterpret_cast<const char*>(data), size});
  oxbow::testing::read_fuzz_folder("t5", 1024);
  return 0;
}
