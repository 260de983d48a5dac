#include "ops/traits.h"

#include "ops/rope/rope.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::RopeOptionsT& o = *step.options.AsRopeOptions();
  return in_words({counted(o.heads, "heads"), o.adjacent ? "adjacent pairs" : ""});
}

}  // namespace

extern const OpTraits rope_traits;
const OpTraits rope_traits = {
    .code = schema::OpCode::Rope,
    .signature = &kRopeSignature,
    .exact_input = 1,
    .turns_heads = true,
    .options = options,
};

}  // namespace oxbow
