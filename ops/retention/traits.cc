#include "ops/traits.h"

#include "ops/retention/retention.h"

namespace oxbow {
namespace {

/// A row of each head's matrix is read and written for every key.
double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  const double heads = step.options.AsRetentionOptions()->heads;
  return 2.0 * model.tensors[step.inputs[0]]->width * model.tensors[step.inputs[2]]->width / heads;
}

std::string options(const schema::StepT& step) {
  const schema::RetentionOptionsT& o = *step.options.AsRetentionOptions();
  return in_words(
      {counted(o.heads, "heads"), o.chunk == 0 ? "" : "chunks of " + std::to_string(o.chunk)});
}

}  // namespace

extern const OpTraits retention_traits;
const OpTraits retention_traits = {
    .code = schema::OpCode::Retention,
    .signature = &kRetentionSignature,
    .category = OpCategory::kAttention,
    .macs = macs,
    .options = options,
};

}  // namespace oxbow
