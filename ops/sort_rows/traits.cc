#include "ops/traits.h"

#include "ops/sort_rows/sort_rows.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  return counted(step.options.AsSortRowsOptions()->lists, "lists");
}

}  // namespace

extern const OpTraits sort_rows_traits;
const OpTraits sort_rows_traits = {
    .code = schema::OpCode::SortRows,
    .signature = &kSortRowsSignature,
    .options = options,
};

}  // namespace oxbow
