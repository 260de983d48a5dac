// Any bytes as a safetensors file: read or refused with an InputError.

#include "host/safetensors.h"

#include "host/errors.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow;
  try {
    oxbow::testing::read_all(
        read_safetensors("input", std::as_bytes(std::span(data, size))).tensors);
  } catch (const oxbow::InputError&) {
  }
  return 0;
}
