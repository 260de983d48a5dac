#include "ops/traits.h"

#include "ops/take_rows/take_rows.h"

namespace oxbow {
namespace {

std::vector<std::vector<ScaledInput>> scaled_by(const schema::StepT&) {
  return {{{0, ScaledInput::kBefore}}};
}

std::string options(const schema::StepT& step) {
  const schema::TakeRowsOptionsT* o = step.options.AsTakeRowsOptions();
  return o != nullptr && o->from_start ? "from the start" : "";
}

}  // namespace

extern const OpTraits take_rows_traits;
const OpTraits take_rows_traits = {
    .code = schema::OpCode::TakeRows,
    .signature = &kTakeRowsSignature,
    .scaled_by = scaled_by,
    .options = options,
};

}  // namespace oxbow
