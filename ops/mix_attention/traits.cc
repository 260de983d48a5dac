#include "ops/traits.h"

#include "ops/mix_attention/mix_attention.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  return counted(step.inputs.size() / 2, "attentions");
}

}  // namespace

extern const OpTraits mix_attention_traits;
const OpTraits mix_attention_traits = {
    .code = schema::OpCode::MixAttention,
    .signature = &kMixAttentionSignature,
    .category = OpCategory::kAttention,
    .options = options,
};

}  // namespace oxbow
