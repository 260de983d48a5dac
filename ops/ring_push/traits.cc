#include "ops/traits.h"

#include "ops/ring_push/ring_push.h"

namespace oxbow {
namespace {

uint32_t remembered_scales(const schema::ModelT& model, const schema::StepT& step, size_t input) {
  const schema::TensorT& state = *model.tensors[step.outputs[input]];
  return state.type == schema::DataType::I8 ? state.scale_groups : 0;
}

std::string options(const schema::StepT& step) {
  const schema::RingPushOptionsT& o = *step.options.AsRingPushOptions();
  return in_words({o.group > 1 ? "groups of " + std::to_string(o.group) : "",
                   o.only_full != 0 ? "runs of " + std::to_string(o.only_full) + " only" : "",
                   o.first != 0 ? "the first " + std::to_string(o.first) : "",
                   o.replace ? "replaces" : ""});
}

}  // namespace

extern const OpTraits ring_push_traits;
const OpTraits ring_push_traits = {
    .code = schema::OpCode::RingPush,
    .signature = &kRingPushSignature,
    .category = OpCategory::kMemory,
    .i8_states = true,
    .remembered_scales = remembered_scales,
    .quantizes_rows = true,
    .stores_rows = true,
    .options = options,
};

}  // namespace oxbow
