#include "ops/traits.h"

#include "ops/slice_columns/slice_columns.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::SliceColumnsOptionsT& o = *step.options.AsSliceColumnsOptions();
  return "from column " + std::to_string(o.first);
}

}  // namespace

extern const OpTraits slice_columns_traits;
const OpTraits slice_columns_traits = {
    .code = schema::OpCode::SliceColumns,
    .signature = &kSliceColumnsSignature,
    .options = options,
};

}  // namespace oxbow
