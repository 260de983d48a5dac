#include "ops/traits.h"

#include "ops/mix_attention/mix_attention.h"

namespace oxbow {
namespace {

constexpr OpSignature kSignature = {
    .for_tools = true,
    .inputs = {{.name = "x and log-sum-exps", .least = 2, .most = 2 * kMaxMixed}},
    .outputs = {{.name = "y", .types = kF32 | kI8, .width = Width::of(0), .rows = Rows::of(0)}},
};

std::string options(const schema::StepT& step) {
  return counted(step.inputs.size() / 2, "attentions");
}

}  // namespace

extern const OpTraits mix_attention_traits;
const OpTraits mix_attention_traits = {
    .code = schema::OpCode::MixAttention,
    .signature = &kSignature,
    .category = OpCategory::kAttention,
    .options = options,
};

}  // namespace oxbow
