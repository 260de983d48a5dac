#include "ops/traits.h"

#include "ops/multiply/multiply.h"

namespace oxbow {
namespace {

/// Either side: behind a gate it is the second that nothing else is done to.
std::vector<std::vector<ScaledInput>> scaled_by(const schema::StepT&) {
  return {{{1, ScaledInput::kBefore}}, {{0, ScaledInput::kBefore}}};
}

}  // namespace

extern const OpTraits multiply_traits;
const OpTraits multiply_traits = {
    .code = schema::OpCode::Multiply,
    .signature = &kMultiplySignature,
    .scaled_by = scaled_by,
};

}  // namespace oxbow
