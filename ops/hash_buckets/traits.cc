#include "ops/traits.h"

#include "ops/hash_buckets/hash_buckets.h"

namespace oxbow {
namespace {

double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  // Of one bucket: a row of the output.
  const schema::HashBucketsOptionsT& o = *step.options.AsHashBucketsOptions();
  const schema::TensorT& rotations = *model.tensors[step.inputs[1]];
  return double{static_cast<double>(rotations.rows)} / o.heads * rotations.width / o.rounds;
}

/// For each token.
double rows_per_token(const schema::StepT& step) {
  const schema::HashBucketsOptionsT& o = *step.options.AsHashBucketsOptions();
  return static_cast<double>(o.heads) * o.rounds;
}

std::string options(const schema::StepT& step) {
  const schema::HashBucketsOptionsT& o = *step.options.AsHashBucketsOptions();
  uint64_t all = 1;
  for (const uint32_t factor : o.buckets) all *= factor;
  return in_words(
      {counted(o.heads, "heads"), counted(o.rounds, "rounds"), counted(all, "buckets")});
}

}  // namespace

extern const OpTraits hash_buckets_traits;
const OpTraits hash_buckets_traits = {
    .code = schema::OpCode::HashBuckets,
    .signature = &kHashBucketsSignature,
    .category = OpCategory::kAttention,
    .macs = macs,
    .rows_per_token = rows_per_token,
    .options = options,
};

}  // namespace oxbow
