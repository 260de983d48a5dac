#include "ops/traits.h"

#include "ops/embedding/embedding.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::EmbeddingOptionsT& o = *step.options.AsEmbeddingOptions();
  return in_words({o.scale != 1.0f ? "scaled" : "",
                   o.first != 0 ? "from id " + std::to_string(o.first) : "",
                   o.partial ? "zeros for other ids" : ""});
}

}  // namespace

extern const OpTraits embedding_traits;
const OpTraits embedding_traits = {
    .code = schema::OpCode::Embedding,
    .signature = &kEmbeddingSignature,
    .category = OpCategory::kEmbedding,
    .options = options,
};

}  // namespace oxbow
