#include "ops/traits.h"

#include "ops/positions/positions.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::PositionsOptionsT& o = *step.options.AsPositionsOptions();
  return in_words({o.offset != 0 ? "from " + std::to_string(o.offset) : "",
                   o.wrap != 0 ? "modulo " + std::to_string(o.wrap) : "",
                   o.pad_token >= 0 ? "without token " + std::to_string(o.pad_token) : ""});
}

}  // namespace

extern const OpTraits positions_traits;
const OpTraits positions_traits = {
    .code = schema::OpCode::Positions,
    .signature = &kPositionsSignature,
    .category = OpCategory::kEmbedding,
    .options = options,
};

}  // namespace oxbow
