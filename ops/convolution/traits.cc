#include "ops/traits.h"

#include "ops/convolution/convolution.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::ConvolutionOptionsT& o = *step.options.AsConvolutionOptions();
  return in_words({counted(o.heads, "heads"), counted(o.taps, "taps"), o.dynamic ? "dynamic" : "",
                   o.softmax ? "softmax" : "", o.has_memory ? "memory" : "",
                   o.has_bias ? "bias" : ""});
}

}  // namespace

extern const OpTraits convolution_traits;
const OpTraits convolution_traits = {
    .code = schema::OpCode::Convolution,
    .signature = &kConvolutionSignature,
    // The few rows it looks back to are not worth an error: its states stay float.
    .i8_states = false,
    .options = options,
};

}  // namespace oxbow
