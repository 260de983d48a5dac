#include "ops/traits.h"

#include "ops/ring_evict/ring_evict.h"

namespace oxbow {
namespace {

double rows_per_token(const schema::StepT& step) {
  return 1.0 / step.options.AsRingEvictOptions()->group;
}

std::string options(const schema::StepT& step) {
  const schema::RingEvictOptionsT& o = *step.options.AsRingEvictOptions();
  return in_words({"groups of " + std::to_string(o.group), o.pad_front ? "padded" : "",
                   o.only_full != 0 ? "runs of " + std::to_string(o.only_full) + " only" : "",
                   o.all ? "all rows" : ""});
}

}  // namespace

extern const OpTraits ring_evict_traits;
const OpTraits ring_evict_traits = {
    .code = schema::OpCode::RingEvict,
    .signature = &kRingEvictSignature,
    .category = OpCategory::kMemory,
    .i8_states = true,
    .rows_per_token = rows_per_token,
    .options = options,
};

}  // namespace oxbow
