// RoBERTa (Liu et al. 2019) as in Hugging Face's library.

#include "converter/blocks/roberta.h"

namespace oxbow::convert {

void import_roberta(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  import_roberta_model(checkpoint, options, graph);
}

}  // namespace oxbow::convert
