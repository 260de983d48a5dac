#include "ops/traits.h"

#include "ops/recurrence/recurrence.h"

namespace oxbow {
namespace {

/// Every element of the state takes part in the decay, the write, the read, and what else the rule has.
double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  const schema::RecurrenceOptionsT& o = *step.options.AsRecurrenceOptions();
  const size_t state = (o.reads ? 1 : 0) + (o.writes ? 2 : 0);
  const schema::TensorT& tensor = *model.tensors[step.inputs.at(state)];
  const int times = (o.reads ? 1 : 0) + (o.writes ? 1 : 0) + (o.has_decay ? 1 : 0) +
                    (o.delta ? 1 : 0) + (o.rank_one ? 2 : 0);
  return times * static_cast<double>(tensor.rows) * tensor.width;
}

std::string options(const schema::StepT& step) {
  const schema::RecurrenceOptionsT& o = *step.options.AsRecurrenceOptions();
  return in_words({o.has_decay ? "decay" : "", o.delta ? "delta" : "", o.rank_one ? "rank one" : "",
                   o.writes ? "" : "reads only", o.reads ? "" : "writes only"});
}

}  // namespace

extern const OpTraits recurrence_traits;
const OpTraits recurrence_traits = {
    .code = schema::OpCode::Recurrence,
    .signature = &kRecurrenceSignature,
    .category = OpCategory::kAttention,
    .macs = macs,
    .options = options,
};

}  // namespace oxbow
