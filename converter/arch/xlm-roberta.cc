// XLM-RoBERTa (Conneau et al. 2019) as in Hugging Face's library: RoBERTa with a vocabulary of a hundred languages.

#include "converter/blocks/roberta.h"

namespace oxbow::convert {

void import_xlm_roberta(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  import_roberta_model(checkpoint, options, graph);
}

}  // namespace oxbow::convert
