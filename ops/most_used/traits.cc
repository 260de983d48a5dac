#include "ops/traits.h"

#include "ops/most_used/most_used.h"

namespace oxbow {
namespace {

/// Keys and the table of positions are those of an attention.
uint32_t remembered_scales(const schema::ModelT&, const schema::StepT& step, size_t input) {
  return input == 2 || input == 4 || input == 6 ? step.options.AsMostUsedOptions()->heads : 0;
}

double rows_per_token(const schema::StepT& step) {
  return 1.0 / step.options.AsMostUsedOptions()->group;
}

/// A query's products with all keys and their positions.
double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  return 2.0 * model.tensors[step.inputs[0]]->width * model.tensors[step.inputs[4]]->rows;
}

std::string options(const schema::StepT& step) {
  const schema::MostUsedOptionsT& o = *step.options.AsMostUsedOptions();
  return in_words({counted(o.heads, "heads"), "one of " + std::to_string(o.group)});
}

}  // namespace

extern const OpTraits most_used_traits;
const OpTraits most_used_traits = {
    .code = schema::OpCode::MostUsed,
    .signature = &kMostUsedSignature,
    .category = OpCategory::kMemory,
    .i8_states = true,
    .remembered_scales = remembered_scales,
    .macs = macs,
    .rows_per_token = rows_per_token,
    .options = options,
};

}  // namespace oxbow
