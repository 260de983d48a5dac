#include "ops/traits.h"

#include "ops/repeat_rows/repeat_rows.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::RepeatRowsOptionsT& o = *step.options.AsRepeatRowsOptions();
  return in_words({o.group != 1 ? counted(o.group, "times") : "",
                   o.offset != 0 ? "moved by " + std::to_string(-int64_t{o.offset}) : ""});
}

}  // namespace

extern const OpTraits repeat_rows_traits;
const OpTraits repeat_rows_traits = {
    .code = schema::OpCode::RepeatRows,
    .signature = &kRepeatRowsSignature,
    .options = options,
};

}  // namespace oxbow
