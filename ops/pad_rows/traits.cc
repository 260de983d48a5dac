#include "ops/traits.h"

#include "ops/pad_rows/pad_rows.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  return "to a multiple of " + std::to_string(step.options.AsPadRowsOptions()->multiple);
}

}  // namespace

extern const OpTraits pad_rows_traits;
const OpTraits pad_rows_traits = {
    .code = schema::OpCode::PadRows,
    .signature = &kPadRowsSignature,
    .options = options,
};

}  // namespace oxbow
