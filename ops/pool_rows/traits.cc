#include "ops/traits.h"

#include "ops/pool_rows/pool_rows.h"

namespace oxbow {
namespace {

double rows_per_token(const schema::StepT& step) {
  const uint32_t group = step.options.AsPoolRowsOptions()->group;
  return group == 0 ? 1.0 : 1.0 / group;
}

std::string options(const schema::StepT& step) {
  const schema::PoolRowsOptionsT& o = *step.options.AsPoolRowsOptions();
  return in_words({o.mean ? "mean" : "sum",
                   o.group != 0  ? counted(o.group, "rows")
                   : o.has_shape ? "rows by shape"
                                 : "all rows",
                   o.front != 0 ? counted(o.front, "zeros in front") : "", o.joins ? "joins" : "",
                   o.has_factors ? "factors" : ""});
}

}  // namespace

extern const OpTraits pool_rows_traits;
const OpTraits pool_rows_traits = {
    .code = schema::OpCode::PoolRows,
    .signature = &kPoolRowsSignature,
    .rows_per_token = rows_per_token,
    .options = options,
};

}  // namespace oxbow
