#include "ops/traits.h"

#include "ops/embedding/embedding.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::EmbeddingOptionsT& o = *step.options.AsEmbeddingOptions();
  return in_words({o.scale != 1.0f ? "scaled" : "",
                   o.first != 0 ? "from id " + std::to_string(o.first) : "",
                   o.partial ? "zeros for other ids" : "",
                   o.turned != 0 ? "turned back in blocks of " + std::to_string(o.turned) : ""});
}

void turn_back(schema::StepT& step, uint32_t block) {
  step.options.AsEmbeddingOptions()->turned = block;
}

}  // namespace

extern const OpTraits embedding_traits;
const OpTraits embedding_traits = {
    .code = schema::OpCode::Embedding,
    .signature = &kEmbeddingSignature,
    .category = OpCategory::kEmbedding,
    .options = options,
    .turn_back = turn_back,
};

}  // namespace oxbow
