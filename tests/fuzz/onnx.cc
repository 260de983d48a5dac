// Any bytes as an ONNX file: its tensors named and read and its settings derived, or refused with an InputError.

#include "converter/formats/onnx_model.h"
#include "host/errors.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::convert;
  try {
    const OnnxGraph graph = read_onnx("input", std::as_bytes(std::span(data, size)));
    const oxbow::TensorMap tensors = name_onnx_tensors("input", graph);
    oxbow::testing::read_all(tensors);
    static_cast<void>(derive_onnx_config("input", graph, tensors));
  } catch (const oxbow::InputError&) {
  }
  return 0;
}
