// Any bytes as a file of torch.save, archive or older layout: read or refused with an InputError.

#include "converter/formats/torch_file.h"

#include "host/errors.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::convert;
  try {
    oxbow::testing::read_all(read_torch("input", std::as_bytes(std::span(data, size))).tensors);
  } catch (const oxbow::InputError&) {
  }
  return 0;
}
