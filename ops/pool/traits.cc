#include "ops/traits.h"

#include "ops/pool/pool.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::PoolOptionsT& o = *step.options.AsPoolOptions();
  return in_words({o.pooling == schema::Pooling::Mean ? "mean" : "max",
                   "groups of " + std::to_string(o.group)});
}

}  // namespace

extern const OpTraits pool_traits;
const OpTraits pool_traits = {
    .code = schema::OpCode::Pool,
    .signature = &kPoolSignature,
    .category = OpCategory::kMemory,
    .options = options,
};

}  // namespace oxbow
