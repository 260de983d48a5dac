// CamemBERT (Martin et al. 2019) as in Hugging Face's library: RoBERTa in French.

#include "converter/blocks/roberta.h"

namespace oxbow::convert {

void import_camembert(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  import_roberta_model(checkpoint, options, graph);
}

}  // namespace oxbow::convert
